/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_cell: a cell's way through a kernel, and what its end means for both.
 * Owns: nothing that lasts.
 * Threads: the owner of the kernel.
 * May include: all of lib.
 */
#include "lib/sandbox/warm_cell.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/box/spawn.h"
#include "lib/cell/kernel.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_table.h"
#include "lib/sandbox/verdict.h"
#include "lib/sandbox/warm.h"
#include "lib/sandbox/warm_box.h"
#include "lib/sandbox/warm_life.h"

static void set_running(struct warm *warm, bool running)
{
    (void)pthread_mutex_lock(&warm->lock);
    warm->running = running;
    warm->cells += running ? 1 : 0;
    warm->used_ms = clock_wall_ms();
    warm->used_ns = clock_mono_ns();
    (void)pthread_mutex_unlock(&warm->lock);
    session_table_count(session_hold_entry(warm->session), running ? 1 : -1);
}

/* The state was kept: the cell's own end, or an interrupt at the deadline or on request. */
static void judge_alive(const struct execution *execution, const struct kernel_reply *reply,
                        struct run_result *result)
{
    result->has_exit_code = reply->has_exit_code;
    result->exit_code = reply->exit_code;
    if (reply->stop == BOX_STOP_DEADLINE) {
        result->fault = RUN_FAULT_TIMEOUT;
        (void)snprintf(
            result->fault_message, sizeof(result->fault_message),
            "the time limit of %gs passed: the cell was interrupted, the kernel kept its "
            "state",
            execution->request->limits.timeout_s);
    } else if (reply->stop == BOX_STOP_CANCELLED) {
        result->fault = RUN_FAULT_CANCELLED;
        (void)snprintf(result->fault_message, sizeof(result->fault_message),
                       "%s: the cell was interrupted, the kernel kept its state",
                       cancel_reason_text(cancel_get(&execution->cancel)));
    }
}

/* Its kernel was ended on request: whatever the pump saw of that first, it was no accident. */
static bool is_ended_on_request(const struct execution *execution)
{
    switch (cancel_get(&execution->cancel)) {
    case CANCEL_SESSION_GONE:
    case CANCEL_KERNEL_GONE:
    case CANCEL_SHUTDOWN:
        return true;
    case CANCEL_NONE:
    case CANCEL_REQUESTED:
    case CANCEL_CLIENT_GONE:
        return false;
    }
    return false;
}

static void tell_lost_state(const struct warm *warm, struct run_result *result)
{
    char cause[sizeof(result->fault_message)];

    memcpy(cause, result->fault_message, sizeof(cause));
    if (result->fault == RUN_FAULT_NONE || result->fault == RUN_FAULT_KILLED) {
        result->fault = RUN_FAULT_KILLED;
        (void)snprintf(result->fault_message, sizeof(result->fault_message),
                       "the kernel died while the cell ran, its state is lost: %.180s",
                       warm->reason);
    } else {
        (void)snprintf(result->fault_message, sizeof(result->fault_message),
                       "%.200s; the kernel's state is lost", cause);
    }
}

static void judge_dead(struct warm *warm, const struct execution *execution,
                       const struct kernel_reply *reply, struct run_result *result)
{
    struct box_outcome outcome;
    const struct warm_death death = {
        .stop = is_ended_on_request(execution) ? BOX_STOP_CANCELLED : reply->stop,
        .at_once = execution->request->kill_at_end,
        .nonsense = reply->nonsense,
    };
    const struct verdict_input input = {
        .stop = death.stop,
        .cancelled = cancel_get(&execution->cancel),
        .timeout_s = execution->request->limits.timeout_s,
        .memory_mb = warm->limits.memory_mb,
        .outcome = &outcome,
    };

    warm_box_bury(warm, &death, &outcome);
    verdict_apply(&input, result);
    tell_lost_state(warm, result);
}

static void fill_times(struct execution *execution, int64_t began_ns)
{
    struct run_result *result = &execution->result;
    int64_t now_ns = clock_mono_ns();

    result->usage.queue_ms = clock_ms_between(execution->queued_ns, began_ns);
    result->usage.start_ms = 0;
    result->usage.wall_ms = clock_ms_between(began_ns, now_ns);
    result->usage.source = "kernel";
    result->started_wall_ms = clock_wall_ms() - (now_ns - began_ns) / CLOCK_NS_PER_MS;
}

static void fill_result(struct execution *execution, const struct box_io *io,
                        struct cell_results *cells, struct kernel_reply *reply)
{
    struct run_result *result = &execution->result;

    result->truncated_stdout = io->truncated_stdout;
    result->truncated_stderr = io->truncated_stderr;
    result->results = cells->items;
    result->result_count = cells->count;
    result->results_truncated = cells->truncated;
    *cells = CELL_RESULTS_INIT;
    result->late_stdout = reply->late_stdout;
    result->late_stderr = reply->late_stderr;
    reply->late_stdout = BUF_INIT(0);
    reply->late_stderr = BUF_INIT(0);
}

static void prepare(struct execution *execution, struct box_io *io)
{
    const struct limits *limits = &execution->request->limits;
    struct run_result *result = &execution->result;

    *io = (struct box_io){
        .sink = &execution->sink.sink,
        .max_output = (size_t)limits->max_output_bytes,
        .capture_stdout = &result->stdout_data,
        .capture_stderr = &result->stderr_data,
        .deadline = clock_deadline_after_s(limits->timeout_s),
        .cancel = &execution->cancel,
        .peer_fd = -1,
        .steps = &execution->steps,
    };
    result->stdout_data.max = io->max_output;
    result->stderr_data.max = io->max_output;
}

/* One cell and what comes of it. */
struct round {
    struct box_io io;
    struct cell_results cells;
    struct kernel_reply reply;
};

/* From its start to the driver's word, or the death of either. */
static int run(struct warm *warm, struct execution *execution, struct round *round, struct err *err)
{
    const struct run_request *request = execution->request;
    const struct kernel_cell cell = { .code = request->code,
                                      .code_size = request->code_size,
                                      .io = &round->io,
                                      .results = &round->cells,
                                      .stdin_data = request->stdin_data,
                                      .stdin_size = request->stdin_size,
                                      .kill = request->kill_at_end };
    int result;

    set_running(warm, true);
    execution_set_box(execution, kernel_box(warm->kernel));
    events_sink_start(&execution->sink);
    spawn_settle(); /* files may have been put since the last cell */
    steps_mark(&execution->steps, STEP_TAKE);
    result = kernel_run(warm->kernel, &cell, &round->reply, err);
    steps_mark(&execution->steps, STEP_RUN);
    execution_set_box(execution, NULL);
    set_running(warm, false);
    return result;
}

/* It had died before the cell began. */
static void refuse(struct warm *warm, struct err *err)
{
    const struct warm_death death = { .stop = BOX_STOP_EXITED, .idle = true };

    if (err->code == ERR_KERNEL_DEAD) {
        warm_box_bury(warm, &death, NULL);
        (void)err_set(err, ERR_KERNEL_DEAD, 0, "the kernel is dead: %s", warm->reason);
    }
}

static void judge(struct warm *warm, struct execution *execution, struct round *round)
{
    fill_result(execution, &round->io, &round->cells, &round->reply);
    execution->result.state_kept = round->reply.alive;
    if (round->reply.alive) {
        judge_alive(execution, &round->reply, &execution->result);
    } else {
        judge_dead(warm, execution, &round->reply, &execution->result);
    }
    kernel_reply_done(&round->reply);
}

int warm_cell_run(struct warm *warm, struct execution *execution, struct err *err)
{
    struct round round = { .cells = CELL_RESULTS_INIT };
    int64_t began_ns;
    int ran;

    if (warm_life_wake(warm, err) < 0) {
        return -1;
    }
    execution->result.enforced = warm->enforced;
    began_ns = clock_mono_ns();
    prepare(execution, &round.io);
    ran = run(warm, execution, &round, err);
    if (ran < 0) {
        refuse(warm, err);
    } else {
        fill_times(execution, began_ns);
        judge(warm, execution, &round);
    }
    cell_results_done(&round.cells);
    return ran;
}
