/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admission: queueing, the queue's deadline, and executions with ids of their callers.
 * Owns: nothing that lasts.
 * Threads: any but the event one; jobs end on run threads, or on the alarm's.
 * May include: all of lib.
 */
#include "lib/sandbox/admission.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/base/text.h"
#include "lib/journal/journal.h"
#include "lib/sandbox/call.h"
#include "lib/sandbox/environments_make.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/executions.h"
#include "lib/sandbox/live.h"
#include "lib/sandbox/pull.h"
#include "lib/sandbox/records.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_make.h"
#include "lib/sandbox/warm.h"
#include "lib/sandbox/warm_life.h"

/* Data of the first event: readers who come later have to know how output is to be told. */
#define BASE64 "base64"

static void end(struct execution *execution, const struct err *failure)
{
    const struct err none = ERR_INIT;

    execution->result.finished_wall_ms = clock_wall_ms();
    environments_make_settle(execution, false, failure == NULL ? &none : failure);
    session_make_settle(execution, false);
    execution_leave(execution);
    execution_finish(execution, failure);
    records_put(execution->sandbox, execution, EXECUTION_DONE);
    live_remove(&execution->sandbox->live, execution);
}

static void clear_alarm(struct execution *execution)
{
    if (execution->request->queue_timeout_s > 0) {
        (void)alarm_clear(execution->sandbox->alarm, &execution->queue_alarm);
    }
}

void admission_refuse(struct execution *execution, const struct err *failure)
{
    clear_alarm(execution);
    end(execution, failure);
}

/* Of a cell's kernel, beyond the cell's own end; NULL: it is none. */
static struct warm *kernel_of(struct execution *execution)
{
    return execution->warm == NULL ? NULL : warm_ref(execution->warm);
}

static void pass_on(struct warm *warm)
{
    if (warm != NULL) {
        warm_life_check(warm);
        warm_next(warm);
        warm_unref(warm);
    }
}

static void job_run(struct pool_job *job)
{
    struct execution *execution = CONTAINER_OF(job, struct execution, job);
    struct sandbox *sandbox = execution->sandbox;
    struct warm *warm = kernel_of(execution);

    clear_alarm(execution);
    if (execution->request->kind == RUN_PULL) {
        pull_run(sandbox, execution);
    } else {
        call_run(sandbox, execution);
    }
    live_remove(&sandbox->live, execution);
    pass_on(warm);
}

static void job_drop(struct pool_job *job)
{
    struct execution *execution = CONTAINER_OF(job, struct execution, job);
    struct warm *warm = kernel_of(execution);
    struct err failure = ERR_INIT;

    (void)err_set(&failure, ERR_SHUTTING_DOWN, 0, "the server shut down before this was started");
    admission_refuse(execution, &failure);
    pass_on(warm);
}

/* Out of the queue, whichever it is in: true, it will not run. */
static bool withdraw(struct execution *execution)
{
    return execution->warm != NULL ? warm_withdraw(execution->warm, execution)
                                   : pool_withdraw(execution->sandbox->pool, &execution->job);
}

/* On the alarm's thread. Withdrawing decides: a job that a run thread has taken runs. */
static void queue_timed_out(struct alarm_entry *entry)
{
    struct execution *execution = CONTAINER_OF(entry, struct execution, queue_alarm);
    struct err failure = ERR_INIT;

    if (withdraw(execution)) {
        (void)err_set(&failure, ERR_QUEUE_TIMEOUT, 0,
                      "it was not started within queueTimeoutS of %g",
                      execution->request->queue_timeout_s);
        (void)err_retry_after(&failure, pool_wait_s(execution->sandbox->pool));
        end(execution, &failure);
    }
}

void admission_withdraw(struct execution *execution)
{
    struct run_result *result = &execution->result;

    clear_alarm(execution);
    if (withdraw(execution)) {
        result->fault = RUN_FAULT_CANCELLED;
        (void)snprintf(result->fault_message, sizeof(result->fault_message),
                       "cancelled before it started: %s",
                       cancel_reason_text(cancel_get(&execution->cancel)));
        end(execution, NULL);
    }
}

static int open_log(struct sandbox *sandbox, struct execution *execution, struct err *err)
{
    execution->tape = execution->request->id != NULL
                          ? journal_start_again(sandbox->journal, execution->id, err)
                          : journal_start(sandbox->journal, execution->id, err);
    if (execution->tape == NULL) {
        return -1;
    }
    events_sink_init(&execution->sink, execution->tape);
    return 0;
}

/* What waits for others, not for a processor, has threads of its own. */
static struct pool *lane_of(struct sandbox *sandbox, const struct run_request *request)
{
    return request->detach || request->kind == RUN_PULL ? sandbox->background : sandbox->pool;
}

static int enqueue(struct sandbox *sandbox, struct execution *execution, struct err *err)
{
    const struct run_request *request = execution->request;
    const double queue_timeout_s = request->queue_timeout_s;
    struct pool *lane = lane_of(sandbox, request);
    struct pool_stats stats;
    int submitted;

    pool_stats(lane, &stats);
    events_add(execution->tape, EVENT_QUEUED, stats.queued, BASE64,
               request->stdout_base64 ? sizeof(BASE64) - 1 : 0);
    if (queue_timeout_s > 0) {
        execution->queue_alarm.ring = queue_timed_out;
        alarm_set(sandbox->alarm, &execution->queue_alarm, clock_deadline_after_s(queue_timeout_s));
    }
    steps_mark(&execution->steps, STEP_ADMIT);
    submitted = execution->warm != NULL ? warm_enqueue(execution->warm, execution, err)
                                        : pool_submit(lane, &execution->job, err);
    if (submitted < 0) {
        clear_alarm(execution);
        if (lane == sandbox->background && err != NULL && err->code == ERR_QUEUE_FULL) {
            (void)err_set(err, ERR_TOO_MANY_REQUESTS, 0,
                          "%zu background programs and pulls run already, more can't",
                          stats.threads);
            return err_remedy(err, "end one of them with DELETE /v1/executions/{id}");
        }
        return -1;
    }
    return 0;
}

/* Others get their record soon after, off the latency path. */
static bool is_recorded_first(const struct run_request *request)
{
    return request->id != NULL || request->announced;
}

/* Undoes what was begun for one that the queue would not take. */
static void refuse(struct sandbox *sandbox, struct execution *execution, const struct err *failure)
{
    execution_leave(execution);
    if (is_recorded_first(execution->request)) {
        records_remove(sandbox, execution);
    }
    if (execution->request->id != NULL) {
        /* Somebody may follow it by its id already. */
        execution_finish(execution, failure);
    }
    if (execution->tape != NULL) {
        tape_finish(execution->tape);
        journal_drop(sandbox->journal, execution->tape);
    }
    live_remove(&sandbox->live, execution);
    execution_unref(execution);
}

/* The same request under the same id, under way already: the caller follows that one. */
static struct execution *find_same(struct sandbox *sandbox, const struct run_request *request,
                                   struct err *err)
{
    struct execution *execution = live_find(&sandbox->live, request->id);

    if (execution != NULL && (request->all || execution->request->caller == request->caller) &&
        request->fingerprint[0] != '\0' &&
        text_equal(execution->request->fingerprint, request->fingerprint)) {
        return execution;
    }
    execution_unref(execution);
    (void)err_set(err, ERR_EXECUTION_EXISTS, 0, "there is an execution %s already", request->id);
    (void)err_remedy(err, "choose another id, or read the old one at /v1/executions/%s",
                     request->id);
    return NULL;
}

static bool is_taken(struct sandbox *sandbox, const char *id)
{
    const struct session_actor everybody = { .all = true };

    return executions_check(sandbox, &everybody, id, NULL) == 0;
}

/* With its log, into the list of those under way: who finds it there can follow it. */
static int list(struct sandbox *sandbox, struct execution *execution, struct err *err)
{
    if (open_log(sandbox, execution, err) < 0) {
        return -1;
    }
    live_add(&sandbox->live, execution);
    return 0;
}

static int record_and_list(struct sandbox *sandbox, struct execution *execution, struct err *err)
{
    if (records_insert(sandbox, execution, err) < 0) {
        return -1;
    }
    if (list(sandbox, execution, err) < 0) {
        records_remove(sandbox, execution);
        return -1;
    }
    return 0;
}

/* One lock makes an id that a caller chose that of one alone. */
static int list_named(struct sandbox *sandbox, struct execution *execution, struct err *err)
{
    int result = 0;

    (void)pthread_mutex_lock(&sandbox->naming);
    if (is_taken(sandbox, execution->id)) {
        result = err_set(err, ERR_EXECUTION_EXISTS, 0, "the id is taken");
    } else {
        result = record_and_list(sandbox, execution, err);
    }
    (void)pthread_mutex_unlock(&sandbox->naming);
    return result;
}

static int list_any(struct sandbox *sandbox, struct execution *execution, struct err *err)
{
    if (execution->request->id != NULL) {
        return list_named(sandbox, execution, err);
    }
    return is_recorded_first(execution->request) ? record_and_list(sandbox, execution, err)
                                                 : list(sandbox, execution, err);
}

/* What its box may use has to be there before it starts; a cell needs what its kernel may use. */
static void claim_memory(struct execution *execution, struct warm *warm)
{
    const struct limits *limits = warm != NULL ? &warm->limits : &execution->request->limits;

    execution->memory.lasting = execution->request->detach;
    execution->job.claim = warm != NULL ? &warm->memory : &execution->memory;
    execution->job.need = capacity_need(limits);
}

static void prepare(struct execution *execution, struct warm *warm)
{
    execution->job.run = job_run;
    execution->job.drop = job_drop;
    execution->job.caller = execution->request->caller;
    if (execution->request->kind != RUN_PULL) {
        claim_memory(execution, warm);
    }
    if (warm != NULL) {
        execution->job.mobile = true;
        execution->warm = warm_ref(warm);
        (void)snprintf(execution->kernel_id, sizeof(execution->kernel_id), "%s", warm->id);
        (void)snprintf(execution->session_id, sizeof(execution->session_id), "%s",
                       warm->session_id);
    }
    execution->job.group = capacity_group(execution->session_id);
}

static struct execution *submit(struct sandbox *sandbox, struct warm *warm,
                                struct run_request *request, struct err *err)
{
    struct execution *execution = execution_new(sandbox, request, err);
    struct execution *same = NULL;
    struct err failure = ERR_INIT;

    if (execution == NULL) {
        return NULL;
    }
    prepare(execution, warm);
    if (list_any(sandbox, execution, &failure) < 0) {
        if (failure.code == ERR_EXECUTION_EXISTS) {
            same = find_same(sandbox, request, &failure);
        }
        execution_unref(execution);
    } else {
        execution_enter_session(execution);
        if (enqueue(sandbox, execution, &failure) == 0) {
            if (!is_recorded_first(request)) {
                records_put(sandbox, execution, EXECUTION_QUEUED);
            }
            (void)atomic_fetch_add(&sandbox->executions_total, 1);
            return execution;
        }
        refuse(sandbox, execution, &failure);
    }
    if (same == NULL && err != NULL) {
        *err = failure;
    }
    return same;
}

struct execution *admission_submit(struct sandbox *sandbox, struct run_request *request,
                                   struct err *err)
{
    return submit(sandbox, NULL, request, err);
}

struct execution *admission_submit_cell(struct sandbox *sandbox, struct warm *warm,
                                        struct run_request *request, struct err *err)
{
    return submit(sandbox, warm, request, err);
}
