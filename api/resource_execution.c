/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: executions: list, look up (also with a wait), cancel.
 * Owns: nothing.
 * Threads: handlers on the quick lane; an answer that was waited for on whatever thread ends it.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource_execution.h"

#include "api/decode.h"
#include "api/execution_out.h"
#include "api/resource.h"
#include "api/wait.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/sandbox/executions.h"

#define LIST_LIMIT 100
#define LIST_LIMIT_MAX 1000
#define WAIT_MAX_S 60

/* ---- list ---- */

static int read_state(const char *text, struct executions_filter *filter, struct err *err)
{
    static const char *const names[] = {
        [EXECUTION_QUEUED] = "queued", [EXECUTION_RUNNING] = "running", [EXECUTION_DONE] = "done"
    };

    if (text == NULL) {
        return 0;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (text_equal(text, names[i])) {
            filter->by_state = true;
            filter->state = (enum execution_state)i;
            return 0;
        }
    }
    return err_set(err, ERR_BAD_VALUE, 0,
                   "the query parameter \"state\" must be queued, running or done");
}

static int read_filter(const struct decode_query *query, struct executions_filter *filter,
                       struct err *err)
{
    static const struct decode_range range = { .min = 1, .max = LIST_LIMIT_MAX };
    uint64_t limit = LIST_LIMIT;

    if (decode_query_count(query, "limit", &range, &limit, err) < 0) {
        return -1;
    }
    *filter = (struct executions_filter){ .limit = (size_t)limit,
                                          .cursor = decode_query_text(query, "cursor"),
                                          .session_id = decode_query_text(query, "sessionId") };
    return read_state(decode_query_text(query, "state"), filter, err);
}

static void answer_page(struct api_call *call, const struct executions_page *page)
{
    struct json_out json;

    resource_reply(call, 200, &json);
    json_out_open(&json, '{');
    json_out_key(&json, "items");
    json_out_open(&json, '[');
    for (size_t i = 0; i < page->count; i++) {
        execution_out_row(&json, &page->items[i]);
    }
    json_out_close(&json, ']');
    json_out_key(&json, "nextCursor");
    json_out_string(&json, page->next_cursor);
    json_out_close(&json, '}');
    resource_finish(call, &json);
}

void resource_execution_list(struct api_call *call)
{
    static const char *const known[] = { "sessionId", "state", "limit", "cursor", NULL };
    const struct session_actor actor = resource_actor(call);
    struct executions_filter filter;
    struct executions_page page;
    struct decode_query query;
    struct err err = ERR_INIT;

    if (resource_accepts_json(call, &err) < 0 ||
        decode_query(call->query, known, &query, &err) < 0 ||
        read_filter(&query, &filter, &err) < 0 ||
        executions_list(call->api->sandbox, &actor, &filter, &page, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    answer_page(call, &page);
    executions_page_done(&page);
}

/* ---- look up ---- */

static void answer(struct api_call *call, const char *id)
{
    const struct session_actor actor = resource_actor(call);
    struct execution_view view;
    struct err err = ERR_INIT;
    struct json_out json;

    if (executions_get(call->api->sandbox, &actor, id, true, &view, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    execution_out_view(&json, &view);
    executions_view_done(&view);
    resource_finish(call, &json);
}

static void answer_waiter(struct api_call *call, struct execution *execution, enum wait_end end)
{
    (void)end; /* it tells where the execution stands, whatever has come first */
    answer(call, execution_id(execution));
}

/* "waitS": seconds, fractions too. */
static int read_wait(const struct decode_query *query, double *ret_seconds, struct err *err)
{
    const char *text = decode_query_text(query, "waitS");

    *ret_seconds = 0;
    if (text != NULL && (text_parse_double(text, ret_seconds) < 0 || *ret_seconds < 0 ||
                         *ret_seconds > WAIT_MAX_S)) {
        return err_set(err, ERR_BAD_VALUE, 0,
                       "the query parameter \"waitS\" must be a number from 0 to %d", WAIT_MAX_S);
    }
    return 0;
}

void resource_execution_get(struct api_call *call)
{
    static const char *const known[] = { "waitS", NULL };
    const struct session_actor actor = resource_actor(call);
    struct wait_plan plan = { .answer = answer_waiter };
    struct decode_query query;
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];
    double seconds = 0;

    if (resource_accepts_json(call, &err) < 0 ||
        decode_query(call->query, known, &query, &err) < 0 ||
        read_wait(&query, &seconds, &err) < 0 ||
        resource_id(call, "id", ERR_EXECUTION_NOT_FOUND, id, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    if (seconds > 0) {
        plan.execution = executions_find_live(call->api->sandbox, &actor, id, NULL);
    }
    if (plan.execution == NULL) {
        answer(call, id);
        return;
    }
    plan.deadline = clock_deadline_after_s(seconds);
    wait_begin(call, &plan);
}

/* ---- cancel ---- */

void resource_execution_cancel(struct api_call *call)
{
    const struct session_actor actor = resource_actor(call);
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];

    if (resource_no_query(call, &err) < 0 ||
        resource_id(call, "id", ERR_EXECUTION_NOT_FOUND, id, &err) < 0 ||
        executions_cancel(call->api->sandbox, &actor, id, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_finish_empty(call);
}
