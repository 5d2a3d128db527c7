/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the boundary that the server calls.
 * Owns: the api object, replies, the hook of a call.
 * Threads: any; a reply belongs to one thread at a time.
 * May include: lib/base, lib/sandbox.
 */
#include "api/api.h"

#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "api/execution_out.h"
#include "api/mcp_live.h"
#include "api/once.h"
#include "api/problem.h"
#include "api/quota.h"
#include "api/resource.h"
#include "api/retirement.h"
#include "api/rights.h"
#include "api/route.h"
#include "api/traffic.h"
#include "lib/base/alarm.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/sandbox/sandbox.h"
#include "lib/sandbox/tokens.h"

/* Of a Server-Timing value: a dozen names and numbers. */
#define TIMING_MAX ((size_t)1024)
/* The largest output there can be, twice, with every byte as an escape of six. */
#define REPLY_MAX ((size_t)4 << 30)

void api_render(const struct execution *execution, struct buf *event_text, struct buf *document)
{
    execution_out_render(execution, event_text, document);
}

struct api *api_new(struct sandbox *sandbox, bool test_tools, struct err *err)
{
    struct api *api = alloc_zero(1, sizeof(*api));

    api->alarm = alarm_new(err);
    if (api->alarm == NULL) {
        free(api);
        return NULL;
    }
    api->sandbox = sandbox;
    api->mcp = mcp_live_new(test_tools);
    api->traffic = traffic_new();
    api->started_wall_ms = clock_wall_ms();
    return api;
}

void api_free(struct api *api)
{
    if (api != NULL) {
        alarm_free(api->alarm);
        mcp_live_free(api->mcp);
        traffic_free(api->traffic);
        free(api);
    }
}

/* ---- routes ---- */

const struct api_route *api_route_find(const char *method, const char *target, char *ret_allow,
                                       size_t allow_size, struct err *err)
{
    return route_find(method, target, ret_allow, allow_size, err);
}

enum api_body api_route_body(const struct api_route *route)
{
    return route->body;
}

size_t api_route_body_max(const struct api_route *route)
{
    switch (route->body) {
    case API_BODY_NONE:
        return ROUTE_IGNORED_MAX;
    case API_BODY_JSON:
        return ROUTE_JSON_MAX;
    case API_BODY_FILE:
        break;
    }
    return SIZE_MAX;
}

bool api_route_open(const struct api_route *route)
{
    return route->access == ROUTE_OPEN;
}

const char *api_route_pattern(const struct api_route *route)
{
    return route->pattern;
}

/* ---- counting ---- */

void api_count_connection(struct api *api, int more)
{
    traffic_connections(api->traffic, more);
}

void api_count_begin(struct api *api)
{
    traffic_begin(api->traffic);
}

void api_count_end(struct api *api, const struct api_exchange *exchange)
{
    traffic_end(api->traffic, exchange);
}

/* ---- calls ---- */

bool api_identify(struct api *api, const char *token, struct api_identity *ret_identity)
{
    struct tokens_view view;

    if (!tokens_find(api->sandbox, token, &view)) {
        return false;
    }
    ret_identity->caller = view.caller;
    ret_identity->scope = view.full ? API_SCOPE_FULL : API_SCOPE_RUN;
    return true;
}

void api_dispatch(struct api_call *call)
{
    struct err err = ERR_INIT;

    if (rights_check_route(call, &err) < 0) {
        resource_fail(call, &err);
    } else if (once_begin(call)) {
        call->route->handler(call);
    }
}

const char *api_call_header(const struct api_call *call, const char *name)
{
    for (size_t i = 0; i < call->header_count; i++) {
        if (strcasecmp(call->headers[i].name, name) == 0) {
            return call->headers[i].value;
        }
    }
    return NULL;
}

/*
 * Either side may come first: the canceller fires the token and then looks for a hook, the handler
 * leaves the hook and then looks at the token. The exchange gives the hook to exactly one of them.
 */
static void fire_hook(struct api_call *call)
{
    struct api_hook *hook = atomic_exchange(&call->hook, NULL);

    if (hook != NULL) {
        hook->fire(hook, cancel_get(&call->cancel));
    }
}

void api_call_cancel(struct api_call *call, enum cancel_reason reason)
{
    cancel_fire(&call->cancel, reason);
    fire_hook(call);
}

void api_call_watch(struct api_call *call, struct api_hook *hook)
{
    atomic_store(&call->hook, hook);
    if (cancel_get(&call->cancel) != CANCEL_NONE) {
        fire_hook(call);
    }
}

struct api_hook *api_call_unwatch(struct api_call *call)
{
    return atomic_exchange(&call->hook, NULL);
}

void api_call_finish(struct api_call *call)
{
    retirement_tell(retirement_table, call->route->method, call->route->pattern, &call->reply);
    once_end(call);
    quota_tell(call); /* as it is now, and not as it was for an answer that is told again */
    call->finish(call);
}

void api_call_replying(struct api_call *call)
{
    CLEANUP_BUF struct buf text = BUF_INIT(TIMING_MAX);
    struct steps reply = { .last_ns = call->steps.last_ns };

    if (!call->timed) {
        return;
    }
    steps_mark(&reply, STEP_REPLY);
    steps_add(sandbox_steps(call->api->sandbox), &reply);
    steps_join(&call->steps, &reply);
    if (steps_put_header(&call->steps, &text) == 0) {
        api_reply_header(&call->reply, "Server-Timing", text.data);
    }
}

/* ---- replies ---- */

void api_reply_init(struct api_reply *reply)
{
    *reply = (struct api_reply){
        .status = 500, .body = BUF_INIT(REPLY_MAX), .file = -1, .stream_size = API_SIZE_UNKNOWN
    };
}

void api_reply_done(struct api_reply *reply)
{
    strv_done(&reply->headers);
    buf_done(&reply->body);
    fd_clear(&reply->file);
    if (reply->stream != NULL) {
        reply->stream->free(reply->stream);
        reply->stream = NULL;
    }
}

void api_reply_header(struct api_reply *reply, const char *name, const char *value)
{
    strv_add_all(&reply->headers, name, value, NULL);
}

void api_reply_problem(struct api_reply *reply, const struct err *err, const char *target,
                       const char *request_id)
{
    problem_reply(reply, err, target, request_id);
}
