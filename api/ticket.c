/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: submit executions and answer with them in the form that the client wants.
 * Owns: nothing that lasts.
 * Threads: handlers on the quick lane; results are written on the thread that ended the run.
 * May include: lib/base, lib/sandbox.
 */
#include "api/ticket.h"

#include <stdlib.h>
#include <string.h>

#include "api/execution_out.h"
#include "api/follow.h"
#include "api/header.h"
#include "api/once.h"
#include "api/resource.h"
#include "api/rights.h"
#include "api/wait.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/sandbox/executions.h"
#include "lib/sandbox/sandbox.h"

#define WAIT_MAX_S 60

/* ---- what the client wants ---- */

int ticket_read(const struct api_call *call, struct ticket *ret_ticket, struct err *err)
{
    static const char *const offered[] = { [TICKET_JSON] = "application/json",
                                           [TICKET_NDJSON] = "application/x-ndjson",
                                           [TICKET_SSE] = "text/event-stream",
                                           NULL };
    static const char *const json[] = { "application/json", NULL };
    const char *accept = api_call_header(call, "Accept");
    struct header_preference preference;
    int form = header_accept(accept, offered);

    if (form < 0) {
        return err_set(err, ERR_NOT_ACCEPTABLE, 0,
                       "the Accept header leaves out application/json, application/x-ndjson and "
                       "text/event-stream");
    }
    header_prefer(api_call_header(call, "Prefer"), &preference);
    *ret_ticket = (struct ticket){ .form = (enum ticket_form)form };
    /* A preference may be ignored (RFC 7240): where the client takes no JSON, it is. */
    if (preference.respond_async && header_accept(accept, json) == 0) {
        ret_ticket->form = TICKET_JSON;
        ret_ticket->async = true;
        ret_ticket->wait_s =
            preference.wait_s < WAIT_MAX_S ? (double)preference.wait_s : WAIT_MAX_S;
    }
    return 0;
}

bool ticket_cancels(const struct api_call *call, const struct ticket *ticket,
                    const struct run_request *request)
{
    if (request->on_disconnect != RUN_DISCONNECT_DEFAULT) {
        return request->on_disconnect == RUN_DISCONNECT_CANCEL;
    }
    return !ticket->async && !request->detach && request->id == NULL &&
           api_call_header(call, "Idempotency-Key") == NULL;
}

/* ---- forms of the answer ---- */

static void name_execution(struct api_call *call, const char *id)
{
    api_reply_header(&call->reply, "X-Execution-Id", id);
}

static void fail_execution(struct api_call *call, const char *id, const struct err *err)
{
    api_reply_problem(&call->reply, err, call->target, call->request_id);
    name_execution(call, id);
    api_call_finish(call);
}

/* Where it stands, or what is kept of it. */
static void answer_view(struct api_call *call, int status, const char *id,
                        void (*write)(struct json_out *json, const struct execution_view *view))
{
    const struct session_actor actor = resource_actor(call);
    struct execution_view view;
    struct json_out json;
    struct err err = ERR_INIT;

    if (executions_get(call->api->sandbox, &actor, id, true, &view, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, status, &json);
    name_execution(call, id);
    write(&json, &view);
    executions_view_done(&view);
    resource_finish(call, &json);
}

static void answer_accepted(struct api_call *call, const char *id)
{
    CLEANUP_FREE char *location = alloc_printf("/v1/executions/%s", id);
    struct header_preference preference;

    header_prefer(api_call_header(call, "Prefer"), &preference);
    api_reply_header(&call->reply, "Location", location);
    if (preference.respond_async) {
        api_reply_header(&call->reply, "Preference-Applied", "respond-async");
    }
    answer_view(call, 202, id, execution_out_view);
}

static void answer_result(struct api_call *call, struct execution *execution)
{
    struct err err = ERR_INIT;
    struct json_out json;
    const struct run_result *result = execution_result(execution, &err);

    call->steps = *execution_steps(execution);
    call->timed = true;
    if (result == NULL) {
        fail_execution(call, execution_id(execution), &err);
        return;
    }
    resource_reply(call, 200, &json);
    name_execution(call, execution_id(execution));
    execution_out_result(&json, execution, result);
    resource_finish(call, &json);
}

static void answer_waiter(struct api_call *call, struct execution *execution, enum wait_end end)
{
    if (end == WAIT_DONE) {
        answer_result(call, execution);
    } else {
        answer_accepted(call, execution_id(execution));
    }
}

static void answer_stream(struct api_call *call, const struct ticket *ticket, const char *id,
                          struct execution *cancels)
{
    const struct follow_plan plan = {
        .id = id, .sse = ticket->form == TICKET_SSE, .live = true, .cancels = cancels
    };
    struct err err = ERR_INIT;

    if (follow_reply(call, &plan, &err) < 0) {
        fail_execution(call, id, &err);
        return;
    }
    name_execution(call, id);
    api_call_finish(call);
}

static void answer(struct api_call *call, const struct ticket *ticket, struct execution *execution,
                   bool cancels)
{
    struct wait_plan plan = {
        .execution = execution, .deadline = CLOCK_NEVER, .cancels = cancels, .answer = answer_waiter
    };

    if (ticket->form != TICKET_JSON) {
        answer_stream(call, ticket, execution_id(execution), cancels ? execution : NULL);
        execution_unref(execution);
        return;
    }
    if (ticket->async && ticket->wait_s <= 0) {
        answer_accepted(call, execution_id(execution));
        execution_unref(execution);
        return;
    }
    if (ticket->async) {
        plan.deadline = clock_deadline_after_s(ticket->wait_s);
    }
    wait_begin(call, &plan);
}

void ticket_answer(struct api_call *call, const struct ticket *ticket, struct execution *execution)
{
    once_bind_to(call, execution_id(execution));
    answer(call, ticket, execution, ticket_cancels(call, ticket, execution_request(execution)));
}

void ticket_answer_past(struct api_call *call, const struct ticket *ticket, const char *id)
{
    if (ticket->form != TICKET_JSON) {
        answer_stream(call, ticket, id, NULL);
    } else if (ticket->async) {
        answer_accepted(call, id);
    } else {
        answer_view(call, 200, id, execution_out_past);
    }
}

/* ---- submitting ---- */

int ticket_check(const struct api_call *call, const struct run_request *request, struct err *err)
{
    if (request->detach && request->session == NULL) {
        (void)err_field(err, ERR_BAD_VALUE, "/detach",
                        "a background program needs a session that bounds its life");
        return err_remedy(err, "create a session with POST /v1/sessions, and run it there");
    }
    return rights_check_request(call, request, err);
}

static void complete(struct api_call *call, struct ticket *ticket, struct run_request *request)
{
    const struct session_actor actor = resource_actor(call);

    request->caller = actor.caller;
    request->all = actor.all;
    request->live_output = ticket->form != TICKET_JSON;
    once_fingerprint(call, request->fingerprint);
    steps_mark(&call->steps, STEP_PARSE);
    request->steps = call->steps;
    /* A background program has no end to wait for. */
    ticket->async = ticket->async || (request->detach && ticket->form == TICKET_JSON);
    request->announced = ticket->async || ticket->form != TICKET_JSON;
}

bool ticket_find_past(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                      const char *fingerprint, struct execution_view *ret_view)
{
    struct execution_view view;

    if (id == NULL || executions_get(sandbox, actor, id, true, &view, NULL) < 0) {
        return false;
    }
    if (view.state != EXECUTION_DONE || !text_equal(view.fingerprint, fingerprint)) {
        executions_view_done(&view);
        return false;
    }
    *ret_view = view;
    return true;
}

static bool is_same_past(const struct api_call *call, const char *id, const char *fingerprint)
{
    const struct session_actor actor = resource_actor(call);
    struct execution_view view;

    if (!ticket_find_past(call->api->sandbox, &actor, id, fingerprint, &view)) {
        return false;
    }
    executions_view_done(&view);
    return true;
}

static void submit(struct api_call *call, const struct ticket *ticket, struct run_request *request)
{
    const bool cancels = ticket_cancels(call, ticket, request);
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *fingerprint = alloc_text(request->fingerprint);
    struct execution *execution;
    struct err err = ERR_INIT;

    if (once_bind(call, request, &err) < 0) {
        run_request_free(request);
        resource_fail(call, &err);
        return;
    }
    id = alloc_text(request->id);
    execution = sandbox_submit(call->api->sandbox, request, &err);
    if (execution != NULL) {
        answer(call, ticket, execution, cancels);
        return;
    }
    if (err.code == ERR_EXECUTION_EXISTS && is_same_past(call, id, fingerprint)) {
        ticket_answer_past(call, ticket, id);
        return;
    }
    once_unbind(call);
    resource_fail(call, &err);
}

void ticket_submit(struct api_call *call, struct run_request *request)
{
    struct ticket ticket;
    struct err err = ERR_INIT;

    call->queues = true;
    if (ticket_read(call, &ticket, &err) < 0 || ticket_check(call, request, &err) < 0) {
        run_request_free(request);
        resource_fail(call, &err);
        return;
    }
    complete(call, &ticket, request);
    submit(call, &ticket, request);
}
