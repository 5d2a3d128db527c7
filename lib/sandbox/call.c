/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call: one execution in one fresh box.
 * Owns: the box and the workspace of the call while it runs.
 * Threads: one run thread a call.
 * May include: all of lib.
 */
#include "lib/sandbox/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/box/box.h"
#include "lib/cell/cell.h"
#include "lib/sandbox/boxing.h"
#include "lib/sandbox/environments_make.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/place.h"
#include "lib/sandbox/records.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_make.h"
#include "lib/sandbox/session_remove.h"
#include "lib/sandbox/spares.h"
#include "lib/sandbox/verdict.h"
#include "lib/sandbox/vetting.h"
#include "lib/sandbox/warm.h"
#include "lib/sandbox/warm_cell.h"

/* What one call needs while it runs. */
struct call {
    struct execution *execution;
    const struct run_request *request;
    struct run_result *result;
    struct place place;
    struct box *box; /* from its start until it is left */
    struct box_io io;
    struct cell_results cells;
    struct cell_booted *booted; /* the driver of a spare */
    struct strv change;         /* what its environment still lacks */
    int64_t taken_ns;           /* a run thread took it */
};

static struct boxing boxing_of(struct call *call)
{
    const struct run_request *request = call->request;

    return (struct boxing){
        .sandbox = call->execution->sandbox,
        .request = request,
        .workspace = call->place.path,
        .root = call->place.root,
        .cancel = &call->execution->cancel,
        .driver =
            request->kind == RUN_CODE && cell_needs_driver((enum cell_language)request->language),
        .bare = place_is_empty(&call->place, request),
    };
}

static void prepare_io(struct call *call)
{
    const struct run_request *request = call->request;
    size_t max_output = (size_t)request->limits.max_output_bytes;

    call->result->stdout_data.max = max_output;
    call->result->stderr_data.max = max_output;
    call->io = (struct box_io){
        .stdin_data = request->stdin_data,
        .stdin_size = request->stdin_size,
        .feed = request->interactive ? &call->execution->feed : NULL,
        .sink = &call->execution->sink.sink,
        .max_output = max_output,
        .capture_stdout = &call->result->stdout_data,
        .capture_stderr = &call->result->stderr_data,
        .deadline =
            request->detach ? CLOCK_NEVER : clock_deadline_after_s(request->limits.timeout_s),
        .cancel = &call->execution->cancel,
        .peer_fd = -1,
        .steps = &call->execution->steps,
    };
}

/* Launching and taking down are what the run lane does not do too much of at once. */
static void set_settled(struct call *call, bool settled)
{
    struct execution *execution = call->execution;

    pool_settle(execution->request->detach ? execution->sandbox->background
                                           : execution->sandbox->pool,
                &execution->job, settled);
}

/* What follows is the program's own time. */
static void program_begins(void *context)
{
    set_settled(context, true);
}

static void drop_box(struct call *call)
{
    struct box_outcome outcome;

    if (call->box != NULL) {
        box_end(call->box, NULL, &outcome);
        call->box = NULL;
        call->place.unsure = true;
    }
}

static int run_command(struct call *call, const struct strv *env, enum box_stop *ret_stop,
                       struct err *err)
{
    struct box_program program = { .argv = &call->request->command,
                                   .env = env,
                                   .cwd = call->request->cwd };

    if (box_begin(call->box, &program, err) < 0) {
        return -1;
    }
    steps_mark(call->io.steps, STEP_SEND);
    set_settled(call, true);
    *ret_stop = box_pump(call->box, &call->io);
    return 0;
}

/* A spare whose driver died meanwhile: the caller gets a box of his own and need not know. */
static int replace_spare(struct call *call, struct err *err)
{
    const struct boxing boxing = boxing_of(call);

    cell_unboot(CLEANUP_TAKE(call->booted));
    drop_box(call);
    call->result->usage.source = "cold";
    return boxing_start(&boxing, &call->box, err) < 0 ? -1
                                                      : boxing_secrets(&boxing, call->box, err);
}

static int run_code(struct call *call, const struct strv *env, enum box_stop *ret_stop,
                    struct err *err)
{
    const struct run_request *request = call->request;
    struct cell_code code = { .language = (enum cell_language)request->language,
                              .code = request->code,
                              .code_size = request->code_size,
                              .results = &call->cells,
                              .env = &call->change,
                              .live = request->live_output,
                              .up = program_begins,
                              .context = call };

    if (call->booted != NULL) {
        set_settled(call, true);
        if (cell_run_booted(call->booted, &code, &call->io, ret_stop, NULL) == 0) {
            return 0;
        }
        if (replace_spare(call, err) < 0) {
            return -1;
        }
        prepare_io(call);
    }
    code.env = env;
    code.cwd = request->cwd;
    return cell_run_once(call->box, &code, &call->io, ret_stop, err);
}

static int run_program(struct call *call, enum box_stop *ret_stop, struct err *err)
{
    const struct boxing boxing = boxing_of(call);
    CLEANUP_STRV struct strv env = { 0 };

    boxing_env(&boxing, &env);
    prepare_io(call);
    return call->request->kind == RUN_CODE ? run_code(call, &env, ret_stop, err)
                                           : run_command(call, &env, ret_stop, err);
}

static void take_usage(struct call *call, const struct box_outcome *outcome)
{
    struct run_usage *usage = &call->result->usage;

    usage->queue_ms = clock_ms_between(call->execution->queued_ns, call->taken_ns);
    if (outcome->started_ns > 0) {
        usage->start_ms = clock_ms_between(call->taken_ns, outcome->started_ns);
        usage->wall_ms = clock_ms_between(outcome->started_ns, outcome->ended_ns);
        call->result->started_wall_ms =
            clock_wall_ms() - (clock_mono_ns() - outcome->started_ns) / CLOCK_NS_PER_MS;
    }
    usage->cpu_user_ms = outcome->cpu_user_us < 0 ? -1 : (double)outcome->cpu_user_us / 1000;
    usage->cpu_system_ms = outcome->cpu_system_us < 0 ? -1 : (double)outcome->cpu_system_us / 1000;
    usage->peak_memory_bytes = outcome->peak_memory_bytes;
    usage->peak_pids = outcome->peak_pids;
}

static void take_results(struct call *call)
{
    call->result->results = call->cells.items;
    call->result->result_count = call->cells.count;
    call->result->results_truncated = call->cells.truncated;
    call->cells = (struct cell_results){ 0 };
    call->result->truncated_stdout = call->io.truncated_stdout;
    call->result->truncated_stderr = call->io.truncated_stderr;
}

static void finish_box(struct call *call, enum box_stop stop)
{
    const struct run_request *request = call->request;
    struct box_enforced enforced;
    struct box_outcome outcome;

    set_settled(call, false);
    box_enforced(call->box, &enforced);
    call->result->enforced = (struct run_enforced){
        .memory = enforced.memory, .pids = enforced.pids, .cpu = enforced.cpu, .disk = enforced.disk
    };
    box_end_settle(call->box, &call->io, &outcome); /* call_run leaves it, behind the answer */
    verdict_apply(&(struct verdict_input){ .stop = stop,
                                           .cancelled = cancel_get(&call->execution->cancel),
                                           .timeout_s = request->limits.timeout_s,
                                           .memory_mb = request->limits.memory_mb,
                                           .outcome = &outcome },
                  call->result);
    take_usage(call, &outcome);
    take_results(call);
}

/* A call that was cancelled before its program began has no exit code, only the fault. */
static void set_cancelled(struct call *call)
{
    call->result->fault = RUN_FAULT_CANCELLED;
    (void)snprintf(call->result->fault_message, sizeof(call->result->fault_message),
                   "cancelled before it started: %s",
                   cancel_reason_text(cancel_get(&call->execution->cancel)));
    call->result->usage.queue_ms = clock_ms_between(call->execution->queued_ns, call->taken_ns);
}

static void tell_changes(struct call *call)
{
    for (size_t i = 0; i < call->result->change_count; i++) {
        const struct run_change_row *row = &call->result->changes[i];
        CLEANUP_FREE char *data = alloc_printf("%c%s", (char)('0' + (int)row->change), row->path);

        events_add(call->execution->tape, EVENT_FILE, row->size, data, strlen(data));
    }
}

/* Takes a box over, with its workspace if the call has none. False: there is none (NULL). */
static bool move_in(struct call *call, struct spare *spare, const char *source)
{
    if (spare == NULL) {
        return false;
    }
    call->box = CLEANUP_TAKE(spare->box);
    call->booted = CLEANUP_TAKE(spare->booted);
    call->change = spare->change;
    spare->change = (struct strv){ 0 };
    call->result->usage.source = source;
    if (call->place.path == NULL) {
        call->place = spare->place;
        spare->place = (struct place){ .root = -1 };
    }
    spare_free(spare);
    return true;
}

/* A box that was started ahead. */
static bool take_spare(struct call *call)
{
    const struct boxing boxing = boxing_of(call);

    /* Where callers compete, a flood would take them all, and be no quicker for it. */
    return call->execution->job.favoured &&
           move_in(call, spares_take(call->execution->sandbox->spares, &boxing), "spare");
}

static int run_in_place(struct call *call, struct err *err)
{
    const struct boxing boxing = boxing_of(call);
    enum box_stop stop;
    bool failed;

    if (place_prepare(&call->place, call->request, err) < 0) {
        drop_box(call); /* one that was started ahead */
        return -1;
    }
    if (call->box == NULL && !move_in(call, spare_fork(&boxing), "template") &&
        boxing_start(&boxing, &call->box, err) < 0) {
        return -1;
    }
    /* A spare was started before anybody required anything. */
    if (vetting_box(call->box, call->request, err) < 0 ||
        boxing_secrets(&boxing, call->box, err) < 0) {
        drop_box(call);
        return -1;
    }
    execution_set_box(call->execution, call->box);
    steps_mark(&call->execution->steps, STEP_TAKE);
    place_begin(&call->place, call->request);
    failed = run_program(call, &stop, err) < 0;
    execution_set_box(call->execution, NULL);
    if (failed) {
        drop_box(call);
        return -1;
    }
    steps_mark(&call->execution->steps, STEP_RUN);
    finish_box(call, stop);
    steps_mark(&call->execution->steps, STEP_REAP);
    place_collect(&call->place, call->request, call->result);
    tell_changes(call);
    steps_mark(&call->execution->steps, STEP_DIFF);
    return 0;
}

static int run_somewhere(struct call *call, struct err *err)
{
    if (call->request->session != NULL) {
        place_open_session(call->execution->sandbox, call->request->session, &call->place);
        (void)take_spare(call);
        return run_in_place(call, err);
    }
    if (call->request->workspace != NULL) {
        return place_open_host(call->execution->sandbox, call->request->workspace, &call->place,
                               err) < 0
                   ? -1
                   : run_in_place(call, err);
    }
    if (take_spare(call)) {
        return run_in_place(call, err);
    }
    return place_open_fresh(call->execution->sandbox, &call->place, err) < 0
               ? -1
               : run_in_place(call, err);
}

/*
 * What is told of a session or an environment is right before anybody hears of the end. The
 * session's hold is given back: who asks then sees no call running.
 */
static void settle(struct call *call, const struct err *failure)
{
    struct session_hold *hold = call->request->session;
    const struct run_result *result = call->result;
    bool good = failure->code == ERR_NONE && result->fault == RUN_FAULT_NONE &&
                result->has_exit_code && result->exit_code == 0;

    environments_make_settle(call->execution, good, failure);
    if (hold == NULL) {
        execution_leave(call->execution);
        return;
    }
    place_close(&call->place, false);
    call->place = (struct place){ .sandbox = call->execution->sandbox, .root = -1 };
    session_make_settle(call->execution, good);
    if (call->request->kind == RUN_SETUP) {
        /* What was booted ahead may have seen the packages as they were. */
        spares_drop_session(call->execution->sandbox->spares, call->execution->session_id);
    }
    execution_leave(call->execution);
}

void call_run(struct sandbox *sandbox, struct execution *execution)
{
    struct err failure = ERR_INIT;
    struct call call = {
        .execution = execution,
        .request = execution->request,
        .result = &execution->result,
        .place = { .sandbox = sandbox, .root = -1 },
        .taken_ns = clock_mono_ns(),
    };
    bool gone;

    steps_mark(&execution->steps, STEP_QUEUE);
    execution_set_running(execution);
    if (cancel_get(&execution->cancel) != CANCEL_NONE) {
        set_cancelled(&call);
    } else if (execution->warm != NULL) {
        set_settled(&call, true);
        (void)warm_cell_run(execution->warm, execution, &failure);
    } else if (run_somewhere(&call, &failure) < 0 && failure.code == ERR_CANCELLED) {
        failure = ERR_INIT;
        set_cancelled(&call);
    }
    capacity_give(sandbox, &execution->memory, 0);
    execution->result.finished_wall_ms = clock_wall_ms();
    settle(&call, &failure);
    execution_finish(execution, failure.code == ERR_NONE ? NULL : &failure);
    records_put(sandbox, execution, EXECUTION_DONE);
    gone = box_end_leave(call.box);
    cell_results_done(&call.cells);
    cell_unboot(call.booted);
    strv_done(&call.change);
    place_close(&call.place, gone);
    execution_leave(execution);
    spares_refill(sandbox->spares);
}
