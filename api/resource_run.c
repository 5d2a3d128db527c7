/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: submit one execution and answer when it is done.
 * Owns: the link between a waiting call and its execution.
 * Threads: handlers on the quick lane; the answer is written on the thread that ended the run.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource_run.h"

#include <stdlib.h>

#include "api/execution_out.h"
#include "api/resource.h"
#include "api/run_in.h"
#include "lib/base/alloc.h"
#include "lib/base/container.h"
#include "lib/sandbox/execution.h"
#include "lib/sandbox/sandbox.h"

/* A call that waits for its execution. */
struct waiting {
    struct execution_waiter waiter;
    struct api_call *call;
    struct execution *execution; /* a reference of its own */
};

/* Cancels the execution when the client hangs up. */
struct hang_up {
    struct api_hook hook;
    struct execution *execution; /* a reference of its own, so that it needs nothing of the call */
};

static void hang_up_free(struct api_hook *hook)
{
    struct hang_up *hang_up = CONTAINER_OF(hook, struct hang_up, hook);

    execution_unref(hang_up->execution);
    free(hang_up);
}

static void hang_up_fire(struct api_hook *hook, enum cancel_reason reason)
{
    execution_cancel(CONTAINER_OF(hook, struct hang_up, hook)->execution, reason);
    hang_up_free(hook);
}

static void hang_up_watch(struct api_call *call, struct execution *execution)
{
    struct hang_up *hang_up = alloc_zero(1, sizeof(*hang_up));

    hang_up->hook.fire = hang_up_fire;
    hang_up->execution = execution_ref(execution);
    api_call_watch(call, &hang_up->hook);
}

static void answer(struct api_call *call, struct execution *execution)
{
    struct err err = ERR_INIT;
    struct json_out json;
    const struct run_result *result = execution_result(execution, &err);

    if (result == NULL) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    api_reply_header(&call->reply, "X-Execution-Id", execution_id(execution));
    execution_out_result(&json, execution, result);
    resource_finish(call, &json);
}

static void execution_done(struct execution_waiter *waiter)
{
    struct waiting *waiting = CONTAINER_OF(waiter, struct waiting, waiter);
    struct api_hook *hook = api_call_unwatch(waiting->call);

    if (hook != NULL) {
        hang_up_free(hook);
    }
    answer(waiting->call, waiting->execution);
    execution_unref(waiting->execution);
    free(waiting);
}

static int check_rights(const struct api_call *call, const struct run_request *request,
                        struct err *err)
{
    if (request->network && call->scope != API_SCOPE_FULL) {
        return err_field(err, ERR_NETWORK_DENIED, "/network",
                         "this token may not give a box the network");
    }
    return 0;
}

/* The request is taken over. */
static void submit(struct api_call *call, struct run_request *request)
{
    struct err err = ERR_INIT;
    struct waiting *waiting = NULL;
    struct execution *execution = NULL;

    request->caller = call->caller;
    if (check_rights(call, request, &err) < 0) {
        run_request_free(request);
        resource_fail(call, &err);
        return;
    }
    execution = sandbox_submit(call->api->sandbox, request, &err);
    if (execution == NULL) {
        resource_fail(call, &err);
        return;
    }
    waiting = alloc_zero(1, sizeof(*waiting));
    waiting->waiter.done = execution_done;
    waiting->call = call;
    waiting->execution = execution;
    hang_up_watch(call, execution);
    /* May answer at once: neither the call nor waiting is touched after this. */
    execution_wait(execution, &waiting->waiter);
}

static void run(struct api_call *call, enum run_kind kind)
{
    struct err err = ERR_INIT;
    struct run_request *request = NULL;

    if (resource_accepts_json(call, &err) == 0 && resource_no_query(call, &err) == 0) {
        request = run_in_decode(kind, call->body, call->body_size,
                                sandbox_defaults(call->api->sandbox), &err);
    }
    if (request == NULL) {
        resource_fail(call, &err);
        return;
    }
    submit(call, request);
}

void resource_run_command(struct api_call *call)
{
    run(call, RUN_COMMAND);
}

void resource_run_code(struct api_call *call)
{
    run(call, RUN_CODE);
}
