/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read the bodies of run and runCode and submit what they ask for.
 * Owns: nothing.
 * Threads: handlers on the quick lane.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource_run.h"

#include "api/resource.h"
#include "api/run_in.h"
#include "api/ticket.h"
#include "lib/sandbox/sandbox.h"
#include "lib/sandbox/session.h"

static void run(struct api_call *call, enum run_kind kind)
{
    const struct run_in_base base = resource_base(call);
    struct err err = ERR_INIT;
    struct run_request *request = NULL;

    if (resource_no_query(call, &err) == 0) {
        request = run_in_decode(kind, call->body, call->body_size, &base, &err);
    }
    if (request == NULL) {
        resource_fail(call, &err);
        return;
    }
    ticket_submit(call, request);
}

static void run_in_session(struct api_call *call, enum run_kind kind)
{
    const struct session_actor actor = resource_actor(call);
    struct run_in_base base = resource_base(call);
    struct err err = ERR_INIT;
    struct session_hold *hold = NULL;
    struct run_request *request = NULL;
    char id[RESOURCE_ID_SIZE];

    if (resource_no_query(call, &err) == 0 &&
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
    ticket_submit(call, request);
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
