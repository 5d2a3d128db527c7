/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: bring a cell to the interpreter of its language, whatever became of that one.
 * Owns: cells on their way.
 * Threads: see mcp_cell.h.
 * May include: lib/base, lib/sandbox.
 */
#include "api/mcp_cell.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/mcp_exchange.h"
#include "api/mcp_result.h"
#include "api/mcp_run.h"
#include "api/mcp_session.h"
#include "api/resource.h"
#include "lib/base/alloc.h"
#include "lib/base/container.h"
#include "lib/sandbox/kernels.h"
#include "lib/sandbox/sandbox.h"

#define ATTEMPTS_MAX 4 /* other calls may open and close the same interpreter meanwhile */

/* A cell that waits for its interpreter. */
struct cell {
    struct kernels_waiter waiter;
    struct mcp_request *request;
    struct mcp_arguments *arguments;
    unsigned attempts;
    char session[SESSION_ID_SIZE];
    char kernel[SESSION_ID_SIZE];
    char note[256]; /* what the model should know of the interpreter */
};

static void try_cell(struct cell *cell);

static struct kernels_name name_of(const struct cell *cell)
{
    return (struct kernels_name){ .actor = cell->request->actor,
                                  .session_id = cell->session,
                                  .id = cell->kernel };
}

static void cell_free(struct cell *cell)
{
    mcp_arguments_free(cell->arguments);
    free(cell);
}

static void cell_fail(struct cell *cell, const struct err *err)
{
    mcp_result_fail(cell->request, err);
    cell_free(cell);
}

/* Takes the arguments over. NULL: the request is answered. */
static struct cell *cell_new(struct mcp_request *request, struct mcp_arguments *arguments)
{
    struct cell *cell = alloc_zero(1, sizeof(*cell));
    struct session_hold *hold = NULL;
    struct err err = ERR_INIT;

    cell->request = request;
    cell->arguments = arguments;
    mcp_session_name(request, arguments, cell->session);
    (void)snprintf(cell->kernel, sizeof(cell->kernel), "mcp-%s",
                   run_language_text(arguments->run.language));
    /* Makes the session where it is not there. */
    if (mcp_session_hold(request, arguments, &hold, &err) < 0) {
        cell_fail(cell, &err);
        return NULL;
    }
    session_release(hold, true);
    return cell;
}

/* ---- the interpreter ---- */

static void opened(struct kernels_waiter *waiter, const struct err *failure)
{
    struct cell *cell = CONTAINER_OF(waiter, struct cell, waiter);

    if (failure != NULL && failure->code != ERR_KERNEL_DEAD) {
        cell_fail(cell, failure);
    } else {
        try_cell(cell);
    }
}

static void open_kernel(struct cell *cell)
{
    const struct kernels_name name = name_of(cell);
    const struct kernels_options options = { .language = cell->arguments->run.language,
                                             .idle_timeout_s = KERNELS_IDLE_TIMEOUT_S,
                                             .ttl_s = KERNELS_TTL_S };
    struct err err = ERR_INIT;

    cell->waiter = (struct kernels_waiter){ .done = opened };
    if (kernels_open(cell->request->api->sandbox, &name, &options, &cell->waiter, &err) == 0) {
        return;
    }
    if (err.code == ERR_KERNEL_EXISTS) {
        try_cell(cell);
    } else {
        cell_fail(cell, &err);
    }
}

static void restart_kernel(struct cell *cell)
{
    const struct kernels_name name = name_of(cell);
    struct err err = ERR_INIT;

    cell->waiter = (struct kernels_waiter){ .done = opened };
    if (kernels_restart(cell->request->api->sandbox, &name, &cell->waiter, &err) < 0) {
        cell_fail(cell, &err);
    }
}

/* ---- the cell ---- */

static struct run_request *make_request(const struct cell *cell)
{
    const struct run_request *wanted = &cell->arguments->run;
    struct run_request *run = run_request_new();

    run->kind = RUN_CELL;
    run->code = alloc_copy(wanted->code, wanted->code_size);
    run->code_size = wanted->code_size;
    if (wanted->stdin_data != NULL) {
        run->stdin_data = alloc_copy(wanted->stdin_data, wanted->stdin_size);
        run->stdin_size = wanted->stdin_size;
    }
    run->limits.timeout_s = wanted->limits.timeout_s;
    run->cell_session = alloc_text(cell->session);
    run->cell_kernel = alloc_text(cell->kernel);
    run->live_output = cell->request->progress_token != NULL;
    run->caller = cell->request->actor.caller;
    run->all = cell->request->actor.all;
    return run;
}

/* There is no interpreter, or a dead one: another is on its way, or the request is answered. */
static void replace_kernel(struct cell *cell, const struct err *err)
{
    if (cell->attempts > ATTEMPTS_MAX || mcp_exchange_is_cancelled(cell->request)) {
        cell_fail(cell, err);
        return;
    }
    switch ((int)err->code) {
    case ERR_KERNEL_NOT_FOUND:
        open_kernel(cell);
        break;
    case ERR_KERNEL_LOST:
        (void)snprintf(cell->note, sizeof(cell->note),
                       "a new interpreter: the variables of the one before are lost, the server "
                       "was restarted");
        open_kernel(cell);
        break;
    case ERR_KERNEL_DEAD:
        (void)snprintf(cell->note, sizeof(cell->note),
                       "a new interpreter: the variables of the one before are lost: %.150s",
                       err->msg);
        restart_kernel(cell);
        break;
    default:
        cell_fail(cell, err);
        break;
    }
}

static void try_cell(struct cell *cell)
{
    struct execution *execution;
    struct err err = ERR_INIT;

    cell->attempts++;
    execution = sandbox_submit(cell->request->api->sandbox, make_request(cell), &err);
    if (execution == NULL) {
        replace_kernel(cell, &err);
        return;
    }
    mcp_run_follow(cell->request, execution, cell->note);
    cell_free(cell);
}

void mcp_cell_run(struct mcp_request *request, struct mcp_arguments *arguments)
{
    const struct run_request like = { .kind = RUN_CELL,
                                      .limits.timeout_s = arguments->run.limits.timeout_s };
    struct cell *cell = cell_new(request, arguments);
    struct err err = ERR_INIT;

    if (cell == NULL) {
        return;
    }
    if (mcp_run_check(request, &like, &err) < 0) {
        cell_fail(cell, &err);
    } else {
        try_cell(cell);
    }
}

/* ---- reset ---- */

static void answer_reset(struct cell *cell)
{
    static const char text[] = "The interpreter is gone with its variables; files are kept. The "
                               "next run_code begins with a new one.";
    struct mcp_result result;

    mcp_result_init(&result, true);
    json_out_key(&result.json, "language");
    json_out_string(&result.json, run_language_text(cell->arguments->run.language));
    json_out_key(&result.json, "session_id");
    json_out_string(&result.json, cell->session);
    mcp_result_text(&result, text, sizeof(text) - 1);
    mcp_result_send(&result, cell->request);
    cell_free(cell);
}

static void closed(struct kernels_waiter *waiter, const struct err *failure)
{
    (void)failure;
    answer_reset(CONTAINER_OF(waiter, struct cell, waiter));
}

void mcp_cell_reset(struct mcp_request *request, struct mcp_arguments *arguments)
{
    struct cell *cell = cell_new(request, arguments);
    struct kernels_name name;
    struct err err = ERR_INIT;

    if (cell == NULL) {
        return;
    }
    name = name_of(cell);
    cell->waiter = (struct kernels_waiter){ .done = closed };
    if (kernels_delete(request->api->sandbox, &name, &cell->waiter, &err) < 0) {
        cell_fail(cell, &err);
    }
}
