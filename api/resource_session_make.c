/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make sessions and run their setup steps.
 * Owns: nothing.
 * Threads: handlers on the quick lane; answers on the thread that ended a setup.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource_session_make.h"

#include <stdlib.h>

#include "api/away.h"
#include "api/execution_out.h"
#include "api/resource.h"
#include "api/rights.h"
#include "api/session_in.h"
#include "api/session_out.h"
#include "api/setup_end.h"
#include "api/ticket.h"
#include "api/wait.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/sandbox/execution.h"
#include "lib/sandbox/sandbox.h"

static void answer_session(struct api_call *call, int status, struct session_view *view)
{
    CLEANUP_FREE char *location = alloc_printf("/v1/sessions/%s", view->id);
    struct json_out json;

    resource_reply(call, status, &json);
    api_reply_header(&call->reply, "Location", location);
    session_out_write(&json, view);
    session_view_done(view);
    resource_finish(call, &json);
}

/* The reference is taken over. A client that hangs up ends the setup, and a session that is not
 * ready with it. */
static void await_setup(struct api_call *call, struct execution *setup,
                        void (*answer)(struct api_call *call, struct execution *execution,
                                       enum wait_end end))
{
    struct ticket ticket;

    if (ticket_read(call, &ticket, NULL) == 0 && (ticket.form != TICKET_JSON || ticket.async)) {
        ticket_answer(call, &ticket, setup);
        return;
    }
    wait_begin(
        call, &(struct wait_plan){
                  .execution = setup, .deadline = CLOCK_NEVER, .cancels = true, .answer = answer });
}

/* ---- create ---- */

static void created_with_setup(struct api_call *call, struct execution *setup, enum wait_end end)
{
    const struct session_actor actor = resource_actor(call);
    struct session_view view;
    struct err err = ERR_INIT;

    if (setup_end_judge(setup, end, &err) < 0) {
        setup_end_fail(call, setup, &err);
        return;
    }
    if (session_get(call->api->sandbox, &actor, execution_session_id(setup), false, &view, &err) <
        0) {
        resource_fail(call, &err);
        return;
    }
    api_reply_header(&call->reply, "X-Execution-Id", execution_id(setup));
    answer_session(call, 201, &view);
}

/* What the body asks for: an id to be freed, or NULL, and options. 0 or -1. */
static int read_create(const struct api_call *call, char **ret_id, struct options *ret_options,
                       struct err *err)
{
    const struct run_in_base base = resource_base(call);
    struct ticket ticket;

    if (ticket_read(call, &ticket, err) < 0 || resource_no_query(call, err) < 0 ||
        session_in_create(call->body, call->body_size, &base, ret_id, ret_options, err) < 0) {
        return -1;
    }
    /* Only a setup has anything to tell but the session itself. */
    if ((ret_options->setup == NULL && resource_accepts_json(call, err) < 0) ||
        rights_check_options(call, ret_options, err) < 0) {
        options_done(ret_options);
        return -1;
    }
    return 0;
}

/* Takes the options over. */
static void create(struct api_call *call, const char *id, struct options *options)
{
    const struct session_actor actor = resource_actor(call);
    struct session_created created;
    struct err err = ERR_INIT;

    if (session_create(
            call->api->sandbox, &actor,
            &(struct session_wanted){ .id = id, .options = options, .cancel = &call->cancel },
            &created, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    if (created.setup != NULL) {
        session_view_done(&created.view);
        await_setup(call, created.setup, created_with_setup);
        return;
    }
    answer_session(call, created.is_new ? 201 : 200, &created.view);
}

static void work_create(struct api_call *call)
{
    CLEANUP_FREE char *id = NULL;
    struct options options;
    struct err err = ERR_INIT;

    if (read_create(call, &id, &options, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    create(call, id, &options);
}

void resource_session_make(struct api_call *call)
{
    CLEANUP_FREE char *id = NULL;
    struct options options;
    struct err err = ERR_INIT;

    if (read_create(call, &id, &options, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    if (options.snapshot != NULL) {
        options_done(&options);
        away_run(call, work_create); /* unpacking takes its time */
        return;
    }
    create(call, id, &options);
}

/* ---- setup ---- */

static void setup_ended(struct api_call *call, struct execution *setup, enum wait_end end)
{
    struct err err = ERR_INIT;
    struct json_out json;

    if (setup_end_judge(setup, end, &err) < 0) {
        setup_end_fail(call, setup, &err);
        return;
    }
    resource_reply(call, 200, &json);
    api_reply_header(&call->reply, "X-Execution-Id", execution_id(setup));
    execution_out_result(&json, setup, execution_result(setup, NULL));
    resource_finish(call, &json);
}

void resource_session_make_setup(struct api_call *call)
{
    const struct session_actor actor = resource_actor(call);
    CLEANUP_FREE char *command = NULL;
    struct execution *setup = NULL;
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];
    struct ticket ticket;

    if (ticket_read(call, &ticket, &err) == 0 && resource_no_query(call, &err) == 0 &&
        resource_id(call, "id", ERR_SESSION_NOT_FOUND, id, &err) == 0 &&
        session_in_setup(call->body, call->body_size, &command, &err) == 0 &&
        rights_check_setup(call, &err) == 0) {
        setup = session_setup(call->api->sandbox, &actor, id, command, &err);
    }
    if (setup == NULL) {
        resource_fail(call, &err);
        return;
    }
    await_setup(call, setup, setup_ended);
}
