/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write executions.
 * Owns: the fields of an execution that is not done.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox.
 */
#include "api/execution_out.h"

#include <stdio.h>
#include <string.h>

#include "api/member_out.h"
#include "api/problem.h"
#include "api/result_out.h"
#include "lib/base/clock.h"

static struct result_out describe(const struct execution *execution,
                                  const struct run_result *result)
{
    return (struct result_out){ .id = execution_id(execution),
                                .session_id = execution_session_id(execution),
                                .kernel_id = execution_kernel_id(execution),
                                .request = execution_request(execution),
                                .result = result };
}

/* ---- what is kept ---- */

static void render_result(struct result_out *what, struct buf *event_text, struct buf *document)
{
    struct json_out json;

    json_out_init(&json, event_text);
    result_out_write_end(&json, what);
    what->kept = true;
    json_out_init(&json, document);
    result_out_write(&json, what);
}

/* The server could not do it: the event is the problem, the document a result without anything. */
static void render_failure(const struct execution *execution, const struct err *failure,
                           struct buf *event_text, struct buf *document)
{
    struct run_result nothing;
    struct result_out what = describe(execution, &nothing);
    struct json_out json;

    run_result_init(&nothing);
    nothing.fault = RUN_FAULT_STARTUP_FAILED;
    (void)snprintf(nothing.fault_message, sizeof(nothing.fault_message), "%.250s", failure->msg);
    nothing.finished_wall_ms = clock_wall_ms();
    what.failure = failure;
    json_out_init(&json, event_text);
    json_out_open(&json, '{');
    problem_write_members(&json, failure);
    json_out_close(&json, '}');
    json_out_init(&json, document);
    result_out_write(&json, &what);
    run_result_done(&nothing);
}

void execution_out_render(const struct execution *execution, struct buf *event_text,
                          struct buf *document)
{
    struct err failure = ERR_INIT;
    const struct run_result *result = execution_result(execution, &failure);
    struct result_out what;

    if (result == NULL) {
        render_failure(execution, &failure, event_text, document);
    } else {
        what = describe(execution, result);
        render_result(&what, event_text, document);
    }
}

/* ---- what is told ---- */

void execution_out_result(struct json_out *json, const struct execution *execution,
                          const struct run_result *result)
{
    struct result_out what = describe(execution, result);

    result_out_write(json, &what);
}

void execution_out_kept(struct json_out *json, const struct execution *execution,
                        const struct run_result *result)
{
    struct result_out what = describe(execution, result);

    what.kept = true;
    result_out_write(json, &what);
}

static const char *state_text(enum execution_state state)
{
    switch (state) {
    case EXECUTION_QUEUED:
        return "queued";
    case EXECUTION_RUNNING:
        return "running";
    case EXECUTION_DONE:
        return "done";
    }
    return NULL;
}

/* A row has none of the details: who reads it in a list is led to them, where they are kept. */
static const char *fault_message(enum run_fault fault, bool listed)
{
    if (fault == RUN_FAULT_LOST) {
        return "the server was killed while it ran";
    }
    return listed ? "GET /v1/executions/{id} has the details" : "the details are no longer kept";
}

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

/* The store holds what was written by these names; of another version's, none. */
static enum run_fault fault_of(const struct execution_view *view)
{
    enum run_fault fault = RUN_FAULT_NONE;

    (void)run_fault_parse(view->fault, &fault);
    return fault;
}

static enum run_kind kind_of(const struct execution_view *view)
{
    enum run_kind kind = RUN_COMMAND;

    (void)run_kind_parse(view->kind, &kind);
    return kind;
}

static void write_fault(struct json_out *json, enum run_fault fault)
{
    json_out_key(json, "fault");
    if (fault == RUN_FAULT_NONE) {
        json_out_null(json);
        return;
    }
    json_out_open(json, '{');
    member_out_text(json, "type", run_fault_text(fault));
    member_out_text(json, "message", fault_message(fault, true));
    member_out_text(json, "evidence", "");
    json_out_close(json, '}');
}

/* What a row tells. */
static void write_row(struct json_out *json, const struct execution_view *view)
{
    bool done = view->state == EXECUTION_DONE;

    member_out_text(json, "id", view->id);
    member_out_text(json, "sessionId", view->session_id);
    member_out_text(json, "kernelId", view->kernel_id);
    member_out_text(json, "kind", view->kind);
    member_out_text(json, "state", state_text(view->state));
    if (done) {
        json_out_key(json, "success");
        json_out_bool(json, view->has_exit_code && view->exit_code == 0 && view->fault[0] == '\0');
    }
    json_out_key(json, "exitCode");
    if (view->has_exit_code) {
        json_out_whole(json, view->exit_code);
    } else {
        json_out_null(json);
    }
    write_fault(json, fault_of(view));
    member_out_time(json, "startedAt", view->started_ms);
    member_out_time(json, "finishedAt", view->finished_ms);
}

/*
 * The result of one that is done, but whose result was lost with the server or is no longer kept:
 * it has every member that a result has. What isn't known is null, or nothing that was cut.
 */
static void write_remains(struct json_out *json, const struct execution_view *view)
{
    const struct run_request request = { .kind = kind_of(view) };
    struct buf document = BUF_INIT(SIZE_MAX);
    struct json_out members;
    struct run_result result;

    run_result_init(&result);
    result.has_exit_code = view->has_exit_code;
    result.exit_code = view->exit_code;
    result.fault = fault_of(view);
    (void)snprintf(result.fault_message, sizeof(result.fault_message), "%s",
                   fault_message(result.fault, false));
    result.truncated_stdout = true;
    result.truncated_stderr = true;
    result.results_truncated = true;
    result.changes_truncated = true;
    result.usage.source = NULL;
    result.enforced = (struct run_enforced){ .memory = NULL };
    result.started_wall_ms = view->started_ms;
    result.finished_wall_ms = view->finished_ms;
    json_out_init(&members, &document);
    result_out_write(&members, &(struct result_out){ .id = view->id,
                                                     .session_id = or_null(view->session_id),
                                                     .kernel_id = or_null(view->kernel_id),
                                                     .request = &request,
                                                     .result = &result });
    json_out_raw(json, document.data + 1, document.size - 2);
    buf_done(&document);
    run_result_done(&result);
}

static void open_view(struct json_out *json, const struct execution_view *view)
{
    json_out_open(json, '{');
    json_out_key(json, "queuePosition");
    if (view->queue_position >= 0) {
        json_out_whole(json, view->queue_position);
    } else {
        json_out_null(json);
    }
    member_out_time(json, "createdAt", view->created_ms);
    json_out_key(json, "codeBytes");
    json_out_count(json, view->code_size);
    member_out_text(json, "codeSha256", view->code_sha256);
}

void execution_out_row(struct json_out *json, const struct execution_view *view)
{
    open_view(json, view);
    write_row(json, view);
    json_out_close(json, '}');
}

void execution_out_view(struct json_out *json, const struct execution_view *view)
{
    open_view(json, view);
    if (view->document.size > 2) {
        /* The document's members become part of this object. */
        json_out_raw(json, view->document.data + 1, view->document.size - 2);
    } else if (view->state == EXECUTION_DONE) {
        write_remains(json, view);
    } else {
        write_row(json, view);
    }
    json_out_close(json, '}');
}

void execution_out_past(struct json_out *json, const struct execution_view *view)
{
    if (view->document.size > 0) {
        json_out_raw(json, view->document.data, view->document.size);
    } else {
        execution_out_view(json, view);
    }
}
