/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: replay the events of an execution and follow it.
 * Owns: nothing; the stream is the reply's.
 * Threads: handlers on the quick lane.
 * May include: lib/base, lib/sandbox.
 */
#include "api/decode.h"
#include "api/follow.h"
#include "api/header.h"
#include "api/resource.h"
#include "api/resource_execution.h"
#include "lib/base/text.h"

static int read_form(const struct api_call *call, bool *ret_sse, struct err *err)
{
    static const char *const offered[] = { "application/x-ndjson", "text/event-stream", NULL };
    int form = header_accept(api_call_header(call, "Accept"), offered);

    if (form < 0) {
        return err_set(err, ERR_NOT_ACCEPTABLE, 0,
                       "the Accept header leaves out application/x-ndjson and text/event-stream");
    }
    *ret_sse = form == 1;
    return 0;
}

/*
 * The first event to tell. A browser that connects again sends the same query and the id that it
 * saw last: the header is the newer one.
 */
static int read_from(const struct api_call *call, const struct decode_query *query,
                     uint64_t *ret_from, struct err *err)
{
    static const struct decode_range range = { .min = 0, .max = INT64_MAX };
    const char *last = api_call_header(call, "Last-Event-ID");
    uint64_t after = 0;

    if (decode_query_count(query, "after", &range, &after, err) < 0) {
        return -1;
    }
    *ret_from = decode_query_text(query, "after") == NULL ? 0 : after + 1;
    if (last != NULL && *last != '\0') {
        if (text_parse_u64(last, &after) < 0 || after > INT64_MAX) {
            return err_set(err, ERR_BAD_HEADER, 0, "Last-Event-ID must be the id of an event");
        }
        *ret_from = after + 1;
    }
    return 0;
}

void resource_execution_events(struct api_call *call)
{
    static const char *const known[] = { "after", "follow", NULL };
    struct follow_plan plan = { .live = true };
    struct decode_query query;
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];

    if (read_form(call, &plan.sse, &err) < 0 ||
        decode_query(call->query, known, &query, &err) < 0 ||
        decode_query_bool(&query, "follow", &plan.live, &err) < 0 ||
        read_from(call, &query, &plan.from, &err) < 0 ||
        resource_id(call, "id", ERR_EXECUTION_NOT_FOUND, id, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    plan.id = id;
    if (follow_reply(call, &plan, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    api_reply_header(&call->reply, "X-Execution-Id", id);
    api_call_finish(call);
}
