/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: open kernels: the answer comes when the interpreter is there.
 * Owns: openings under way.
 * Threads: the handler on the quick lane; the answer on the thread that opened the interpreter; a
 * client that hangs up on the server's.
 * May include: lib/base, lib/sandbox.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/kernel_in.h"
#include "api/kernel_out.h"
#include "api/resource.h"
#include "api/resource_kernel.h"
#include "api/rights.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/container.h"
#include "lib/base/id.h"
#include "lib/sandbox/kernels.h"
#include "lib/sandbox/sandbox.h"

/*
 * The handler, the kernel and the client hold a reference each, until they were called or
 * withdrawn. The kernel answers; a client that hangs up before only makes the kernel go again, if
 * nobody else knows its id.
 */
struct opening {
    struct kernels_waiter waiter;
    struct api_hook hook;
    atomic_int references;
    atomic_bool gone; /* the client */
    struct api_call *call;
    struct sandbox *sandbox;
    bool clients_own; /* without the client, nobody could use it */
    char session_id[RESOURCE_ID_SIZE];
    char id[SESSION_ID_SIZE];
};

static struct kernels_name name_of(const struct opening *opening)
{
    return (struct kernels_name){ .actor = resource_actor(opening->call),
                                  .session_id = opening->session_id,
                                  .id = opening->id };
}

static void let_go(struct opening *opening, int references)
{
    if (atomic_fetch_sub(&opening->references, references) == references) {
        free(opening);
    }
}

static void answer(struct opening *opening)
{
    struct api_call *call = opening->call;
    const struct kernels_name name = name_of(opening);
    CLEANUP_FREE char *location =
        alloc_printf("/v1/sessions/%s/kernels/%s", opening->session_id, opening->id);
    struct kernels_view view;
    struct err err = ERR_INIT;
    struct json_out json;

    if (kernels_get(opening->sandbox, &name, &view, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 201, &json);
    api_reply_header(&call->reply, "Location", location);
    kernel_out_write(&json, &view);
    resource_finish(call, &json);
}

/* How many references come back with the client's hook. */
static int forget_client(const struct opening *opening)
{
    return api_call_unwatch(opening->call) != NULL ? 1 : 0;
}

static void opened(struct kernels_waiter *waiter, const struct err *failure)
{
    struct opening *opening = CONTAINER_OF(waiter, struct opening, waiter);

    const int clients = forget_client(opening);

    if (failure != NULL) {
        resource_fail(opening->call, failure);
    } else {
        answer(opening);
    }
    let_go(opening, clients + 1);
}

static void client_gone(struct api_hook *hook, enum cancel_reason reason)
{
    struct opening *opening = CONTAINER_OF(hook, struct opening, hook);

    (void)reason;
    atomic_store(&opening->gone, true);
    if (opening->clients_own) {
        kernels_abandon(opening->sandbox, opening->session_id, opening->id);
    }
    let_go(opening, 1);
}

static struct opening *opening_new(struct api_call *call, const char *id)
{
    struct opening *opening = alloc_zero(1, sizeof(*opening));
    char made[ID_SIZE];

    opening->waiter.done = opened;
    opening->hook.fire = client_gone;
    atomic_init(&opening->references, 3);
    atomic_init(&opening->gone, false);
    opening->call = call;
    opening->sandbox = call->api->sandbox;
    opening->clients_own = id == NULL && api_call_header(call, "Idempotency-Key") == NULL;
    (void)snprintf(opening->id, sizeof(opening->id), "%s", id != NULL ? id : id_make("krn", made));
    return opening;
}

static void start(struct opening *opening, const struct kernels_options *options)
{
    struct api_call *call = opening->call;
    const struct kernels_name name = name_of(opening);
    struct err err = ERR_INIT;

    /* Before the kernel is there: the call may be answered, and so be gone, at any time then. */
    api_call_watch(call, &opening->hook);
    if (kernels_open(opening->sandbox, &name, options, &opening->waiter, &err) < 0) {
        const int clients = forget_client(opening);

        resource_fail(call, &err);
        let_go(opening, clients + 2); /* and for the kernel */
        return;
    }
    if (atomic_load(&opening->gone) && opening->clients_own) {
        kernels_abandon(opening->sandbox, opening->session_id, opening->id);
    }
    let_go(opening, 1);
}

/* Limits of its cells: the same rules as for those that a cell names. */
static int check_rights(const struct api_call *call, const struct kernels_options *options,
                        struct err *err)
{
    const struct run_request like = { .kind = RUN_CELL,
                                      .limits = { .timeout_s = options->timeout_s } };

    return rights_check_request(call, &like, err);
}

void resource_kernel_open(struct api_call *call)
{
    CLEANUP_FREE char *id = NULL;
    struct kernels_options options;
    struct opening *opening;
    char session_id[RESOURCE_ID_SIZE];
    struct err err = ERR_INIT;

    if (resource_accepts_json(call, &err) < 0 || resource_no_query(call, &err) < 0 ||
        resource_id(call, "id", ERR_SESSION_NOT_FOUND, session_id, &err) < 0 ||
        kernel_in_open(call->body, call->body_size, &options, &id, &err) < 0 ||
        check_rights(call, &options, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    opening = opening_new(call, id);
    (void)snprintf(opening->session_id, sizeof(opening->session_id), "%s", session_id);
    start(opening, &options);
}
