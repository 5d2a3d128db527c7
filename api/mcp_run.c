/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: run code and commands for a model, each in a fresh box, and answer with what came of it.
 * Owns: waiters of executions.
 * Threads: see mcp_run.h.
 * May include: lib/base, lib/sandbox.
 */
#include "api/mcp_run.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/mcp_cell.h"
#include "api/mcp_exchange.h"
#include "api/mcp_output.h"
#include "api/mcp_result.h"
#include "api/mcp_session.h"
#include "api/resource.h"
#include "api/rights.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/container.h"
#include "lib/sandbox/sandbox.h"

/* ---- answering ---- */

struct follow {
    struct execution_waiter waiter;
    struct mcp_request *request;
    struct execution *execution; /* the request's reference */
    char note[256];
};

static void ended(struct execution_waiter *waiter)
{
    struct follow *follow = CONTAINER_OF(waiter, struct follow, waiter);
    struct err err = ERR_INIT;
    const struct run_result *run = execution_result(follow->execution, &err);
    struct mcp_result result;

    if (run == NULL) {
        mcp_result_fail(follow->request, &err);
    } else {
        mcp_output_fill(&result, follow->execution, run, follow->note);
        mcp_result_send(&result, follow->request);
    }
    free(follow);
}

void mcp_run_follow(struct mcp_request *request, struct execution *execution, const char *note)
{
    struct follow *follow = alloc_zero(1, sizeof(*follow));

    follow->waiter.done = ended;
    follow->request = request;
    follow->execution = execution;
    (void)snprintf(follow->note, sizeof(follow->note), "%s", note);
    mcp_exchange_run(request, execution, &follow->waiter);
}

/* ---- fresh boxes ---- */

int mcp_run_check(const struct mcp_request *request, const struct run_request *run, struct err *err)
{
    /* All that the rules look at. */
    const struct api_call call = { .api = request->api,
                                   .caller = request->actor.caller,
                                   .scope = request->scope };

    return rights_check_request(&call, run, err);
}

/* What the session says, and over it what was asked for. Takes the hold over. */
static struct run_request *make_request(const struct mcp_request *request,
                                        struct mcp_arguments *arguments, struct session_hold *hold)
{
    struct run_request *run = run_request_new();

    options_apply(session_hold_options(hold), run);
    if (arguments->run.limits.timeout_s > 0) {
        run->limits.timeout_s = arguments->run.limits.timeout_s;
    }
    run->language = arguments->run.language;
    run->code = CLEANUP_TAKE(arguments->run.code);
    run->code_size = arguments->run.code_size;
    run->stdin_data = CLEANUP_TAKE(arguments->run.stdin_data);
    run->stdin_size = arguments->run.stdin_size;
    run->cwd = CLEANUP_TAKE(arguments->run.cwd);
    run->live_output = request->progress_token != NULL;
    run->caller = request->actor.caller;
    run->all = request->actor.all;
    run->session = hold;
    return run;
}

static void submit(struct mcp_request *request, struct mcp_arguments *arguments)
{
    struct execution *execution = NULL;
    struct session_hold *hold = NULL;
    struct run_request *run = NULL;
    struct err err = ERR_INIT;

    if (mcp_session_hold(request, arguments, &hold, &err) == 0) {
        run = make_request(request, arguments, hold);
        run->kind = arguments->command != NULL ? RUN_COMMAND : RUN_CODE;
        if (arguments->command != NULL) {
            strv_add_all(&run->command, "bash", "-c", arguments->command, NULL);
        }
    }
    mcp_arguments_free(arguments);
    if (run != NULL && mcp_run_check(request, run, &err) < 0) {
        run_request_free(run);
    } else if (run != NULL) {
        execution = sandbox_submit(request->api->sandbox, run, &err);
    }
    if (execution == NULL) {
        mcp_result_fail(request, &err);
        return;
    }
    mcp_run_follow(request, execution, "");
}

void mcp_run_command(struct mcp_request *request, struct mcp_arguments *arguments)
{
    submit(request, arguments);
}

void mcp_run_code(struct mcp_request *request, struct mcp_arguments *arguments)
{
    if (arguments->kernel_set ? arguments->kernel : arguments->run.language == RUN_PYTHON) {
        mcp_cell_run(request, arguments);
    } else {
        submit(request, arguments);
    }
}
