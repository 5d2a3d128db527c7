/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution: states, waiters and references of one run.
 * Owns: the request, the result, the cancel token.
 * Threads: any; the result is written by one run thread before DONE.
 * May include: lib/base, lib/sandbox/run.h.
 */
#include "lib/sandbox/execution.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/id.h"
#include "lib/box/box.h"
#include "lib/journal/tape.h"
#include "lib/sandbox/admission.h"
#include "lib/sandbox/environments_use.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session.h"
#include "lib/sandbox/session_table.h"
#include "lib/sandbox/warm.h"

/* Of one of the two texts of the last event. */
#define END_TEXT_MAX ((size_t)1 << 30)

struct execution *execution_new(struct sandbox *sandbox, struct run_request *request,
                                struct err *err)
{
    struct execution *execution = alloc_zero(1, sizeof(*execution));

    char made[ID_SIZE];

    if (cancel_init(&execution->cancel, err) < 0) {
        run_request_free(request);
        free(execution);
        return NULL;
    }
    execution->feed.fd = -1;
    if (request->interactive && feed_init(&execution->feed, err) < 0) {
        cancel_done(&execution->cancel);
        run_request_free(request);
        free(execution);
        return NULL;
    }
    (void)snprintf(execution->id, sizeof(execution->id), "%s",
                   request->id != NULL ? request->id : id_make("exe", made));
    atomic_init(&execution->references, 1);
    (void)pthread_mutex_init(&execution->lock, NULL);
    execution->sandbox = sandbox;
    execution->request = request;
    if (request->session != NULL) {
        (void)snprintf(execution->session_id, sizeof(execution->session_id), "%s",
                       session_hold_id(request->session));
    }
    execution->queued_ns = clock_mono_ns();
    execution->queued_wall_ms = clock_wall_ms();
    run_result_init(&execution->result);
    execution->steps = request->steps;
    if (execution->steps.last_ns == 0) {
        steps_begin(&execution->steps, execution->queued_ns);
    }
    return execution;
}

struct execution *execution_ref(struct execution *execution)
{
    (void)atomic_fetch_add(&execution->references, 1);
    return execution;
}

void execution_unref(struct execution *execution)
{
    if (execution == NULL || atomic_fetch_sub(&execution->references, 1) > 1) {
        return;
    }
    run_request_free(execution->request);
    run_result_done(&execution->result);
    tape_unref(execution->tape);
    warm_unref(execution->warm);
    if (execution->feed.fd >= 0) {
        feed_done(&execution->feed);
    }
    cancel_done(&execution->cancel);
    (void)pthread_mutex_destroy(&execution->lock);
    free(execution);
}

const char *execution_id(const struct execution *execution)
{
    return execution->id;
}

const struct run_request *execution_request(const struct execution *execution)
{
    return execution->request;
}

const char *execution_session_id(const struct execution *execution)
{
    return execution->session_id[0] == '\0' ? NULL : execution->session_id;
}

const char *execution_kernel_id(const struct execution *execution)
{
    return execution->kernel_id[0] == '\0' ? NULL : execution->kernel_id;
}

enum execution_state execution_state(struct execution *execution)
{
    enum execution_state state;

    (void)pthread_mutex_lock(&execution->lock);
    state = execution->state;
    (void)pthread_mutex_unlock(&execution->lock);
    return state;
}

const struct run_result *execution_result(const struct execution *execution, struct err *err)
{
    if (execution->failure.code != ERR_NONE) {
        if (err != NULL) {
            *err = execution->failure;
        }
        return NULL;
    }
    return &execution->result;
}

const struct steps *execution_steps(const struct execution *execution)
{
    return &execution->steps;
}

void execution_enter_session(struct execution *execution)
{
    if (execution->request->session != NULL) {
        session_table_count(session_hold_entry(execution->request->session), 1);
    }
}

void execution_leave(struct execution *execution)
{
    struct session_hold *hold = execution->request->session;

    if (hold != NULL) {
        execution->request->session = NULL;
        session_table_count(session_hold_entry(hold), -1);
        session_release(hold, true);
    }
    environments_use_end(CLEANUP_TAKE(execution->request->environment_use));
}

void execution_set_running(struct execution *execution)
{
    (void)pthread_mutex_lock(&execution->lock);
    execution->state = EXECUTION_RUNNING;
    (void)pthread_mutex_unlock(&execution->lock);
}

/* The last event, with the texts that are kept. Under the lock. */
static void write_end(struct execution *execution, const struct buf *event_text,
                      const struct buf *document)
{
    if (execution->tape == NULL) {
        return;
    }
    events_sink_flush(&execution->sink);
    events_add_end(execution->tape, execution->failure.code == ERR_NONE ? EVENT_EXIT : EVENT_ERROR,
                   event_text, document);
    tape_finish(execution->tape);
}

static void tell_waiters(struct execution_waiter *waiters)
{
    while (waiters != NULL) {
        struct execution_waiter *next = waiters->next; /* done may free the waiter */

        waiters->done(waiters);
        waiters = next;
    }
}

static void count_end(const struct execution *execution)
{
    struct tally *tally = &execution->sandbox->tally;

    if (execution->failure.code == ERR_NONE) {
        tally_end(tally, execution->request->kind, execution->result.fault);
    } else {
        tally_error(tally, execution->request->kind);
    }
}

void execution_finish(struct execution *execution, const struct err *failure)
{
    CLEANUP_BUF struct buf event_text = BUF_INIT(END_TEXT_MAX);
    CLEANUP_BUF struct buf document = BUF_INIT(END_TEXT_MAX);
    struct execution_waiter *waiters;

    if (failure != NULL) {
        execution->failure = *failure;
    }
    if (execution->tape != NULL && execution->sandbox->render != NULL) {
        execution->sandbox->render(execution, &event_text, &document);
    }
    /* In one: who has read the last event finds it done, who finds it done can read all. */
    (void)pthread_mutex_lock(&execution->lock);
    write_end(execution, &event_text, &document);
    steps_mark(&execution->steps, STEP_RECORD);
    steps_add(&execution->sandbox->steps, &execution->steps);
    count_end(execution);
    execution->state = EXECUTION_DONE;
    waiters = execution->waiters;
    execution->waiters = NULL;
    (void)pthread_mutex_unlock(&execution->lock);
    tell_waiters(waiters);
}

void execution_wait(struct execution *execution, struct execution_waiter *waiter)
{
    bool done;

    (void)pthread_mutex_lock(&execution->lock);
    done = execution->state == EXECUTION_DONE;
    if (!done) {
        waiter->next = execution->waiters;
        execution->waiters = waiter;
    }
    (void)pthread_mutex_unlock(&execution->lock);
    if (done) {
        waiter->done(waiter);
    }
}

bool execution_forget(struct execution *execution, struct execution_waiter *waiter)
{
    struct execution_waiter **at = &execution->waiters;
    bool found;

    (void)pthread_mutex_lock(&execution->lock);
    while (*at != NULL && *at != waiter) {
        at = &(*at)->next;
    }
    found = *at != NULL;
    if (found) {
        *at = waiter->next;
    }
    (void)pthread_mutex_unlock(&execution->lock);
    return found;
}

long execution_position(struct execution *execution)
{
    long position = execution->warm == NULL ? -1 : warm_position(execution->warm, execution);

    return position >= 0 ? position : pool_position(execution->sandbox->pool, &execution->job);
}

void execution_set_box(struct execution *execution, struct box *box)
{
    (void)pthread_mutex_lock(&execution->lock);
    execution->box = box;
    (void)pthread_mutex_unlock(&execution->lock);
}

int execution_signal(struct execution *execution, int signal_number, bool all, struct err *err)
{
    int result;

    (void)pthread_mutex_lock(&execution->lock);
    if (execution->box != NULL) {
        /* Sends some bytes to kernd-init and does not wait: short enough for the lock. */
        result = box_signal(execution->box, signal_number, all, err);
    } else if (execution->state == EXECUTION_DONE) {
        result = err_set(err, ERR_EXECUTION_DONE, 0, "the execution has ended");
    } else {
        result = err_set(err, ERR_CONFLICT, 0, "the program has not started yet");
    }
    (void)pthread_mutex_unlock(&execution->lock);
    return result;
}

int execution_write_stdin(struct execution *execution, const void *data, size_t size, bool end,
                          struct err *err)
{
    if (execution->feed.fd < 0) {
        (void)err_set(err, ERR_CONFLICT, 0, "the execution was not started as interactive");
        return err_remedy(err, "start it with \"interactive\": true");
    }
    if (execution_state(execution) == EXECUTION_DONE) {
        return err_set(err, ERR_EXECUTION_DONE, 0, "the execution has ended");
    }
    return feed_put(&execution->feed, data, size, end, err);
}

void execution_cancel(struct execution *execution, enum cancel_reason reason)
{
    cancel_fire(&execution->cancel, reason);
    admission_withdraw(execution);
}
