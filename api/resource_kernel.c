/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: kernels: look up, list, restart, delete; cells and interrupts. resource_kernel_open.c has
 * how they are made.
 * Owns: restarts and deletions under way.
 * Threads: handlers on the quick lane; answers on the thread that ended what was asked for.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource_kernel.h"

#include <stdlib.h>

#include "api/kernel_in.h"
#include "api/kernel_out.h"
#include "api/resource.h"
#include "api/ticket.h"
#include "api/wait.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/sandbox/kernels.h"

/* Whose kernel, which one. */
struct names {
    char session[RESOURCE_ID_SIZE];
    char kernel[RESOURCE_ID_SIZE];
};

static struct kernels_name name_of(const struct api_call *call, const struct names *names)
{
    return (struct kernels_name){ .actor = resource_actor(call),
                                  .session_id = names->session,
                                  .id = names->kernel };
}

static int read_names(const struct api_call *call, struct names *names, struct err *err)
{
    return resource_no_query(call, err) < 0 ||
                   resource_id(call, "id", ERR_SESSION_NOT_FOUND, names->session, err) < 0
               ? -1
               : resource_id(call, "kid", ERR_KERNEL_NOT_FOUND, names->kernel, err);
}

/* ---- look up ---- */

static void answer_view(struct api_call *call, const struct names *names)
{
    const struct kernels_name name = name_of(call, names);
    struct kernels_view view;
    struct err err = ERR_INIT;
    struct json_out json;

    if (kernels_get(call->api->sandbox, &name, &view, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    kernel_out_write(&json, &view);
    resource_finish(call, &json);
}

void resource_kernel_get(struct api_call *call)
{
    struct names names;
    struct err err = ERR_INIT;

    if (resource_accepts_json(call, &err) < 0 || read_names(call, &names, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    answer_view(call, &names);
}

void resource_kernel_list(struct api_call *call)
{
    const struct session_actor actor = resource_actor(call);
    char id[RESOURCE_ID_SIZE];
    struct kernels_list list;
    struct err err = ERR_INIT;
    struct json_out json;

    if (resource_accepts_json(call, &err) < 0 || resource_no_query(call, &err) < 0 ||
        resource_id(call, "id", ERR_SESSION_NOT_FOUND, id, &err) < 0 ||
        kernels_list(call->api->sandbox, &actor, id, &list, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    kernel_out_list(&json, &list);
    kernels_list_done(&list);
    resource_finish(call, &json);
}

/* ---- restart, delete ---- */

/* A call that is answered when its kernel is where it should be. */
struct change {
    struct kernels_waiter waiter;
    struct api_call *call;
    struct names names;
};

static struct change *change_new(struct api_call *call, void (*done)(struct kernels_waiter *waiter,
                                                                     const struct err *failure))
{
    struct change *change = alloc_zero(1, sizeof(*change));

    change->waiter.done = done;
    change->call = call;
    return change;
}

static void restarted(struct kernels_waiter *waiter, const struct err *failure)
{
    struct change *change = CONTAINER_OF(waiter, struct change, waiter);

    if (failure != NULL) {
        resource_fail(change->call, failure);
    } else {
        answer_view(change->call, &change->names);
    }
    free(change);
}

void resource_kernel_restart(struct api_call *call)
{
    struct change *change = change_new(call, restarted);
    const struct kernels_name name = name_of(call, &change->names);
    struct err err = ERR_INIT;

    if (resource_accepts_json(call, &err) < 0 || read_names(call, &change->names, &err) < 0 ||
        kernels_restart(call->api->sandbox, &name, &change->waiter, &err) < 0) {
        free(change);
        resource_fail(call, &err);
    }
}

static void deleted(struct kernels_waiter *waiter, const struct err *failure)
{
    struct change *change = CONTAINER_OF(waiter, struct change, waiter);

    (void)failure;
    resource_finish_empty(change->call);
    free(change);
}

void resource_kernel_delete(struct api_call *call)
{
    struct change *change = change_new(call, deleted);
    const struct kernels_name name = name_of(call, &change->names);
    struct err err = ERR_INIT;

    if (read_names(call, &change->names, &err) < 0 ||
        kernels_delete(call->api->sandbox, &name, &change->waiter, &err) < 0) {
        free(change);
        resource_fail(call, &err);
    }
}

/* ---- cells ---- */

void resource_kernel_cell(struct api_call *call)
{
    struct names names;
    struct run_request *request = NULL;
    struct err err = ERR_INIT;

    if (read_names(call, &names, &err) == 0) {
        request = kernel_in_cell(call->body, call->body_size, &err);
    }
    if (request == NULL) {
        resource_fail(call, &err);
        return;
    }
    request->cell_session = alloc_text(names.session);
    request->cell_kernel = alloc_text(names.kernel);
    ticket_submit(call, request);
}

/* ---- interrupt ---- */

static void write_interrupt(struct api_call *call, const char *cell, bool interrupted, bool killed)
{
    struct json_out json;

    resource_reply(call, 200, &json);
    json_out_open(&json, '{');
    json_out_key(&json, "interrupted");
    json_out_bool(&json, interrupted);
    json_out_key(&json, "killed");
    json_out_bool(&json, killed);
    json_out_key(&json, "executionId");
    json_out_string(&json, cell);
    json_out_close(&json, '}');
    resource_finish(call, &json);
}

/* A cell without a fault ended by itself before the interrupt reached it. */
static void cell_ended(struct api_call *call, struct execution *cell, enum wait_end end)
{
    const struct run_result *result = end == WAIT_DONE ? execution_result(cell, NULL) : NULL;
    const bool interrupted = result != NULL && result->fault != RUN_FAULT_NONE;

    write_interrupt(call, execution_id(cell), interrupted, interrupted && !result->state_kept);
}

void resource_kernel_interrupt(struct api_call *call)
{
    struct names names;
    const struct kernels_name name = name_of(call, &names);
    struct execution *cell = NULL;
    struct err err = ERR_INIT;

    if (resource_accepts_json(call, &err) < 0 || read_names(call, &names, &err) < 0 ||
        kernels_interrupt(call->api->sandbox, &name, &cell, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    if (cell == NULL) {
        write_interrupt(call, NULL, false, false);
        return;
    }
    wait_begin(call, &(struct wait_plan){
                         .execution = cell, .deadline = CLOCK_NEVER, .answer = cell_ended });
}
