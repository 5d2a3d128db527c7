/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: build, list, look up and delete environments.
 * Owns: nothing; a log that is read becomes the reply's.
 * Threads: handlers on the quick lane; answers on the thread that ended a build.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource_environment.h"

#include "api/decode.h"
#include "api/download.h"
#include "api/environment_in.h"
#include "api/environment_out.h"
#include "api/resource.h"
#include "api/run_in.h"
#include "api/setup_end.h"
#include "api/ticket.h"
#include "api/wait.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/sandbox/environments_make.h"
#include "lib/sandbox/sandbox.h"

#define LIST_LIMIT 100
#define LIST_LIMIT_MAX 1000

static int read_id(const struct api_call *call, char out[static RESOURCE_ID_SIZE], struct err *err)
{
    return resource_no_query(call, err) < 0
               ? -1
               : resource_id(call, "id", ERR_ENVIRONMENT_NOT_FOUND, out, err);
}

/* The view is freed. */
static void answer(struct api_call *call, int status, struct environments_view *view)
{
    CLEANUP_FREE char *location = alloc_printf("/v1/environments/%s", view->id);
    struct json_out json;

    resource_reply(call, status, &json);
    api_reply_header(&call->reply, "Location", location);
    environment_out_write(&json, view, call->scope == API_SCOPE_FULL);
    environments_view_done(view);
    resource_finish(call, &json);
}

/* ---- build ---- */

static void built(struct api_call *call, struct execution *build, enum wait_end end)
{
    struct environments_view view;
    struct err err = ERR_INIT;

    if (setup_end_judge(build, end, &err) < 0) {
        setup_end_fail(call, build, &err);
        return;
    }
    if (environments_get(call->api->sandbox, execution_request(build)->builds, &view, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    api_reply_header(&call->reply, "X-Execution-Id", execution_id(build));
    answer(call, 201, &view);
}

/* Whoever leaves leaves the build to the others that wait for it, or come for it later. */
static void await_build(struct api_call *call, struct execution *build)
{
    struct ticket ticket;

    if (ticket_read(call, &ticket, NULL) == 0 && (ticket.form != TICKET_JSON || ticket.async)) {
        ticket_answer(call, &ticket, build);
        return;
    }
    wait_begin(call,
               &(struct wait_plan){ .execution = build, .deadline = CLOCK_NEVER, .answer = built });
}

static int make(struct api_call *call, struct environments_made *ret_made, struct err *err)
{
    const struct run_in_base base = resource_base(call);
    const struct session_actor actor = resource_actor(call);
    struct environment_in in;
    struct ticket ticket;
    int result;

    if (ticket_read(call, &ticket, err) < 0 || resource_no_query(call, err) < 0 ||
        environment_in_make(call->body, call->body_size, &base, &in, err) < 0) {
        return -1;
    }
    result = environments_make(call->api->sandbox, &actor,
                               &(struct environments_wanted){ .name = in.name,
                                                              .engine = in.engine,
                                                              .setup = in.setup,
                                                              .preload = in.preload,
                                                              .limits = in.limits },
                               ret_made, err);
    environment_in_done(&in);
    return result;
}

void resource_environment_make(struct api_call *call)
{
    struct environments_made made;
    struct err err = ERR_INIT;

    if (make(call, &made, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    if (made.build != NULL) {
        environments_view_done(&made.view);
        await_build(call, made.build);
        return;
    }
    answer(call, 200, &made.view);
}

/* ---- list, look up ---- */

void resource_environment_list(struct api_call *call)
{
    static const char *const known[] = { "limit", "cursor", NULL };
    static const struct decode_range range = { .min = 1, .max = LIST_LIMIT_MAX };
    uint64_t limit = LIST_LIMIT;
    struct decode_query query;
    struct environments_page page;
    struct err err = ERR_INIT;
    struct json_out json;

    if (resource_accepts_json(call, &err) < 0 ||
        decode_query(call->query, known, &query, &err) < 0 ||
        decode_query_count(&query, "limit", &range, &limit, &err) < 0 ||
        environments_list(call->api->sandbox, (size_t)limit, decode_query_text(&query, "cursor"),
                          &page, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    environment_out_page(&json, &page, call->scope == API_SCOPE_FULL);
    environments_page_done(&page);
    resource_finish(call, &json);
}

void resource_environment_get(struct api_call *call)
{
    struct environments_view view;
    struct err err = ERR_INIT;
    struct json_out json;
    char id[RESOURCE_ID_SIZE];

    if (resource_accepts_json(call, &err) < 0 || read_id(call, id, &err) < 0 ||
        environments_get(call->api->sandbox, id, &view, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    environment_out_write(&json, &view, call->scope == API_SCOPE_FULL);
    environments_view_done(&view);
    resource_finish(call, &json);
}

void resource_environment_log(struct api_call *call)
{
    CLEANUP_FREE char *etag = NULL;
    CLEANUP_FREE char *name = NULL;
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];
    uint64_t size;
    int file;

    if (read_id(call, id, &err) < 0 ||
        environments_log(call->api->sandbox, id, &file, &size, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    etag = alloc_printf("\"%s-%llu\"", id, (unsigned long long)size);
    name = alloc_printf("%s.log", id);
    download_send(call, &(struct download){ .file = file,
                                            .size = size,
                                            .etag = etag,
                                            .media_type = "text/plain; charset=utf-8",
                                            .name = name });
}

/* ---- delete ---- */

void resource_environment_delete(struct api_call *call)
{
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];

    if (read_id(call, id, &err) < 0 || environments_delete(call->api->sandbox, id, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_finish_empty(call);
}
