/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: replies and checks that handlers share.
 * Owns: nothing.
 * Threads: any.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource.h"

#include <string.h>

#include "api/decode.h"
#include "api/header.h"
#include "api/route.h"
#include "lib/base/id.h"
#include "lib/sandbox/sandbox.h"

struct session_actor resource_actor(const struct api_call *call)
{
    return (struct session_actor){ .caller = call->caller, .all = call->scope == API_SCOPE_FULL };
}

struct run_in_base resource_base(const struct api_call *call)
{
    struct sandbox *sandbox = call->api->sandbox;
    struct run_in_base base = { .defaults = sandbox_defaults(sandbox),
                                .narrow = call->scope != API_SCOPE_FULL };

    sandbox_engine_names(sandbox, &base.engine, &base.other_engine);
    return base;
}

int resource_id(const struct api_call *call, const char *name, enum err_code not_found,
                char out[static RESOURCE_ID_SIZE], struct err *err)
{
    struct decode_path path;
    const char *text = NULL;
    size_t size = 0;

    if (decode_path(call->target, &path, err) < 0) {
        return -1;
    }
    text = route_parameter(call->route->pattern, name, &path, &size);
    if (text != NULL && size < RESOURCE_ID_SIZE) {
        memcpy(out, text, size);
        out[size] = '\0';
        if (strlen(out) == size && id_valid(out)) {
            return 0;
        }
    }
    return err_set(err, not_found, 0, "an id has 1 to %d of A-Z, a-z, 0-9, \".\", \"_\" and \"-\"",
                   RESOURCE_ID_SIZE - 1);
}

void resource_fail(struct api_call *call, const struct err *err)
{
    api_reply_problem(&call->reply, err, call->target, call->request_id);
    api_call_finish(call);
}

void resource_reply(struct api_call *call, int status, struct json_out *ret_json)
{
    call->reply.status = status;
    api_reply_header(&call->reply, "Content-Type", "application/json");
    api_reply_header(&call->reply, "Cache-Control", "no-store");
    json_out_init(ret_json, &call->reply.body);
}

void resource_finish(struct api_call *call, const struct json_out *json)
{
    struct err err = ERR_INIT;

    if (json_out_failed(json)) {
        (void)err_set(&err, ERR_INTERNAL, 0, "the answer is larger than this server can send");
        resource_fail(call, &err);
        return;
    }
    api_call_finish(call);
}

void resource_finish_empty(struct api_call *call)
{
    call->reply.status = 204;
    api_call_finish(call);
}

int resource_accepts_json(const struct api_call *call, struct err *err)
{
    static const char *const offered[] = { "application/json", NULL };

    if (header_accept(api_call_header(call, "Accept"), offered) < 0) {
        return err_set(err, ERR_NOT_ACCEPTABLE, 0,
                       "the Accept header leaves out application/json, which is all there is here");
    }
    return 0;
}

int resource_no_query(const struct api_call *call, struct err *err)
{
    static const char *const known[] = { NULL };
    struct decode_query query;

    return decode_query(call->query, known, &query, err);
}
