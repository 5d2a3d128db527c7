/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_cell: a cell's way through a kernel, and what its end means for both.
 * Owns: nothing that lasts.
 * Threads: the owner of the kernel.
 * May include: all of lib.
 */
#include "lib/sandbox/warm_cell.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/cell/kernel.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/verdict.h"
#include "lib/sandbox/warm.h"
#include "lib/sandbox/warm_box.h"

static double limit_of(const struct warm *warm, const struct run_request *request)
{
    return request->limits.timeout_s > 0 ? request->limits.timeout_s : warm->timeout_s;
}

static void set_current(struct warm *warm, struct execution *execution)
{
    (void)pthread_mutex_lock(&warm->lock);
    warm->current = execution;
    if (execution != NULL) {
        warm->state = KERNELS_BUSY;
        warm->cells++;
    }
    warm->used_ms = clock_wall_ms();
    (void)pthread_mutex_unlock(&warm->lock);
}

/* The state was kept: the cell's own end, or an interrupt at the deadline or on request. */
static void judge_alive(const struct warm *warm, const struct execution *execution,
                        const struct kernel_reply *reply, struct run_result *result)
{
    result->has_exit_code = reply->has_exit_code;
    result->exit_code = reply->exit_code;
    if (reply->stop == BOX_STOP_DEADLINE) {
        result->fault = RUN_FAULT_TIMEOUT;
        (void)snprintf(
            result->fault_message, sizeof(result->fault_message),
            "the time limit of %gs passed: the cell was interrupted, the kernel kept its "
            "state",
            limit_of(warm, execution->request));
    } else if (reply->stop == BOX_STOP_CANCELLED) {
        result->fault = RUN_FAULT_CANCELLED;
        (void)snprintf(result->fault_message, sizeof(result->fault_message),
                       "%s: the cell was interrupted, the kernel kept its state",
                       cancel_reason_text(cancel_get(&execution->cancel)));
    }
}

static void judge_dead(struct warm *warm, const struct execution *execution,
                       const struct kernel_reply *reply, struct run_result *result)
{
    struct box_outcome outcome;
    const struct verdict_input input = {
        .stop = reply->stop,
        .cancelled = cancel_get(&execution->cancel),
        .timeout_s = limit_of(warm, execution->request),
        .memory_mb = session_hold_options(warm->session)->limits.memory_mb,
        .outcome = &outcome,
    };

    warm_box_bury(warm, reply->stop, &outcome);
    verdict_apply(&input, result);
    if (result->fault == RUN_FAULT_NONE) {
        result->fault = RUN_FAULT_KILLED;
    }
    if (result->fault_message[0] == '\0' || reply->stop == BOX_STOP_PEER_LOST) {
        (void)snprintf(result->fault_message, sizeof(result->fault_message),
                       "the kernel died while the cell ran: %.200s", warm->reason);
    }
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

static int run(struct warm *warm, struct execution *execution, struct box_io *io,
               struct cell_results *cells, struct kernel_reply *reply, struct err *err)
{
    const struct run_request *request = execution->request;
    const struct kernel_cell cell = { .code = request->code,
                                      .code_size = request->code_size,
                                      .io = io,
                                      .results = cells,
                                      .stdin_data = request->stdin_data,
                                      .stdin_size = request->stdin_size,
                                      .kill = request->kill_at_end };

    events_add(execution->tape, EVENT_STARTED, 0, NULL, 0);
    if (kernel_run(warm->kernel, &cell, reply, err) == 0) {
        return 0;
    }
    if (err->code == ERR_KERNEL_DEAD) {
        warm_box_bury(warm, BOX_STOP_EXITED, NULL);
        (void)err_set(err, ERR_KERNEL_DEAD, 0, "the kernel is dead: %s", warm->reason);
    }
    return -1;
}

int warm_cell_run(struct warm *warm, struct execution *execution, struct err *err)
{
    const struct run_request *request = execution->request;
    struct run_result *result = &execution->result;
    struct cell_results cells = CELL_RESULTS_INIT;
    struct kernel_reply reply;
    struct box_enforced enforced;
    const int64_t began_ns = clock_mono_ns();
    struct box_io io = {
        .sink = &execution->sink.sink,
        .max_output = (size_t)request->limits.max_output_bytes,
        .capture_stdout = &result->stdout_data,
        .capture_stderr = &result->stderr_data,
        .deadline = clock_deadline_after_s(limit_of(warm, request)),
        .cancel = &execution->cancel,
        .peer_fd = -1,
    };
    int ran;

    result->stdout_data.max = io.max_output;
    result->stderr_data.max = io.max_output;
    box_enforced(kernel_box(warm->kernel), &enforced);
    result->enforced = (struct run_enforced){
        .memory = enforced.memory, .pids = enforced.pids, .cpu = enforced.cpu, .disk = enforced.disk
    };
    set_current(warm, execution);
    execution_set_box(execution, kernel_box(warm->kernel));
    ran = run(warm, execution, &io, &cells, &reply, err);
    execution_set_box(execution, NULL);
    set_current(warm, NULL);
    if (ran == 0) {
        fill_result(execution, &io, &cells, &reply);
        fill_times(execution, began_ns);
        if (reply.alive) {
            judge_alive(warm, execution, &reply, result);
        } else {
            judge_dead(warm, execution, &reply, result);
        }
        kernel_reply_done(&reply);
    }
    cell_results_done(&cells);
    return ran;
}
