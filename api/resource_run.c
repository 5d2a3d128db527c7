/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: submit one execution and answer when it is done.
 * Owns: nothing.
 * Threads: handlers on the quick lane; the answer is written on the thread that ended the run.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource_run.h"

#include "api/execution_out.h"
#include "api/resource.h"
#include "api/execution_out.h"
#include "api/rights.h"
#include "api/run_in.h"
#include "api/wait.h"
#include "lib/base/clock.h"
#include "lib/sandbox/execution.h"
#include "lib/sandbox/sandbox.h"
#include "lib/sandbox/session.h"

static void answer(struct api_call *call, struct execution *execution, enum wait_end end)
{
    struct err err = ERR_INIT;
    struct json_out json;
    const struct run_result *result =
        end == WAIT_DONE ? execution_result(execution, &err) : NULL;

    if (result == NULL) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    api_reply_header(&call->reply, "X-Execution-Id", execution_id(execution));
    execution_out_result(&json, execution, result);
    resource_finish(call, &json);
}

void resource_run_submit(struct api_call *call, struct run_request *request)
{
    struct err err = ERR_INIT;
    struct execution *execution = NULL;

    request->caller = call->caller;
    if (rights_check_request(call, request, &err) < 0) {
        run_request_free(request);
        resource_fail(call, &err);
        return;
    }
    execution = sandbox_submit(call->api->sandbox, request, &err);
    if (execution == NULL) {
        resource_fail(call, &err);
        return;
    }
    wait_begin(call, &(struct wait_plan){ .execution = execution,
                                          .deadline = CLOCK_NEVER,
                                          .cancels = true,
                                          .answer = answer });
}

/* Has the form of the answer, and nothing in the query. */
static int check_form(const struct api_call *call, struct err *err)
{
    return resource_accepts_json(call, err) < 0 ? -1 : resource_no_query(call, err);
}

static void run(struct api_call *call, enum run_kind kind)
{
    const struct run_in_base base = { .defaults = sandbox_defaults(call->api->sandbox),
                                      .narrow = call->scope != API_SCOPE_FULL };
    struct err err = ERR_INIT;
    struct run_request *request = NULL;

    if (check_form(call, &err) == 0) {
        request = run_in_decode(kind, call->body, call->body_size, &base, &err);
    }
    if (request == NULL) {
        resource_fail(call, &err);
        return;
    }
    resource_run_submit(call, request);
}

static void run_in_session(struct api_call *call, enum run_kind kind)
{
    const struct session_actor actor = resource_actor(call);
    struct run_in_base base = { .defaults = sandbox_defaults(call->api->sandbox) };
    struct err err = ERR_INIT;
    struct session_hold *hold = NULL;
    struct run_request *request = NULL;
    char id[RESOURCE_ID_SIZE];

    if (check_form(call, &err) == 0 &&
        resource_id(call, "id", ERR_SESSION_NOT_FOUND, id, &err) == 0 &&
        session_hold(call->api->sandbox, &actor, id, &hold, &err) == 0) {
        base.session = session_hold_options(hold);
        request = run_in_decode(kind, call->body, call->body_size, &base, &err);
    }
    if (request == NULL) {
        session_release(hold, false);
        resource_fail(call, &err);
        return;
    }
    request->session = hold;
    resource_run_submit(call, request);
}

void resource_run_command(struct api_call *call)
{
    run(call, RUN_COMMAND);
}

void resource_run_code(struct api_call *call)
{
    run(call, RUN_CODE);
}

void resource_run_session_command(struct api_call *call)
{
    run_in_session(call, RUN_COMMAND);
}

void resource_run_session_code(struct api_call *call)
{
    run_in_session(call, RUN_CODE);
}
