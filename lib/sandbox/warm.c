/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm: the life of one kernel: states, queue, opening and closing. Cells are in warm_cell.c.
 * Owns: the interpreter and its box, the hold on the session.
 * Threads: any for the queue; run threads, one at a time, for the interpreter.
 * May include: all of lib.
 */
#include "lib/sandbox/warm.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/base/id.h"
#include "lib/cell/kernel.h"
#include "lib/sandbox/admission.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/warm_box.h"

static void job_run(struct pool_job *job);
static void job_drop(struct pool_job *job);

struct warm *warm_ref(struct warm *warm)
{
    (void)atomic_fetch_add(&warm->references, 1);
    return warm;
}

void warm_unref(struct warm *warm)
{
    if (warm == NULL || atomic_fetch_sub(&warm->references, 1) > 1) {
        return;
    }
    session_release(warm->session, false);
    cancel_done(&warm->opening);
    (void)pthread_mutex_destroy(&warm->lock);
    free(warm);
}

struct warm *warm_new(struct sandbox *sandbox, struct session_hold *hold,
                      const struct kernels_options *options, struct err *err)
{
    struct warm *warm = alloc_zero(1, sizeof(*warm));
    char made[ID_SIZE];

    if (cancel_init(&warm->opening, err) < 0) {
        session_release(hold, false);
        free(warm);
        return NULL;
    }
    (void)pthread_mutex_init(&warm->lock, NULL);
    atomic_init(&warm->references, 1);
    (void)snprintf(warm->id, sizeof(warm->id), "%s",
                   options->id != NULL ? options->id : id_make("krn", made));
    warm->sandbox = sandbox;
    warm->session = hold;
    (void)snprintf(warm->session_id, sizeof(warm->session_id), "%s", session_hold_id(hold));
    warm->language = options->language;
    warm->timeout_s = options->timeout_s;
    warm->idle_timeout_s = options->idle_timeout_s;
    warm->ttl_s = options->ttl_s;
    warm->created_ms = clock_wall_ms();
    warm->used_ms = warm->created_ms;
    warm->job.run = job_run;
    warm->job.drop = job_drop;
    session_table_count(session_hold_entry(hold), 0, 1);
    return warm;
}

/* Its session may go now. */
static void leave_session(struct warm *warm)
{
    session_table_count(session_hold_entry(warm->session), 0, -1);
    session_release(CLEANUP_TAKE(warm->session), true);
}

/* ---- waiters ---- */

void warm_wait(struct warm *warm, struct kernels_waiter *waiter)
{
    bool settled;

    (void)pthread_mutex_lock(&warm->lock);
    settled = warm->state != KERNELS_STARTING;
    if (!settled) {
        waiter->next = warm->waiters;
        warm->waiters = waiter;
    }
    (void)pthread_mutex_unlock(&warm->lock);
    if (settled) {
        waiter->done(waiter);
    }
}

static void call_waiters(struct kernels_waiter *waiters)
{
    while (waiters != NULL) {
        struct kernels_waiter *next = waiters->next; /* done may free it */

        waiters->done(waiters);
        waiters = next;
    }
}

/* ---- the queue ---- */

static void refuse_dead(const struct warm *warm, struct err *err)
{
    (void)err_set(err, ERR_KERNEL_DEAD, 0, "the kernel is dead: %s", warm->reason);
}

/* Locked. */
static struct execution *pop(struct warm *warm)
{
    struct execution *execution = warm->first;

    if (execution != NULL) {
        warm->first = execution->next_cell;
        warm->last = warm->first == NULL ? NULL : warm->last;
        warm->queued--;
    }
    return execution;
}

/* Locked. */
static void push(struct warm *warm, struct execution *execution)
{
    execution->next_cell = NULL;
    if (warm->last == NULL) {
        warm->first = execution;
    } else {
        warm->last->next_cell = execution;
    }
    warm->last = execution;
    warm->queued++;
}

int warm_enqueue(struct warm *warm, struct execution *execution, struct err *err)
{
    int result = 0;

    (void)pthread_mutex_lock(&warm->lock);
    if (warm->state == KERNELS_DEAD || warm->closing) {
        refuse_dead(warm, err);
        result = -1;
    } else if (warm->queued >= WARM_QUEUE_MAX) {
        result = err_set(err, ERR_QUEUE_FULL, 0, "%d cells wait for this kernel already",
                         WARM_QUEUE_MAX);
    } else if (warm->owned) {
        push(warm, execution);
    } else {
        warm->owned = true;
        warm->state = KERNELS_BUSY;
        result = pool_submit(warm->sandbox->pool, &execution->job, err);
        if (result < 0) {
            warm->owned = false;
            warm->state = KERNELS_IDLE;
        }
    }
    (void)pthread_mutex_unlock(&warm->lock);
    return result;
}

static bool take_from_queue(struct warm *warm, const struct execution *execution)
{
    struct execution **at = &warm->first;
    struct execution *before = NULL;

    while (*at != NULL && *at != execution) {
        before = *at;
        at = &(*at)->next_cell;
    }
    if (*at == NULL) {
        return false;
    }
    *at = execution->next_cell;
    if (warm->last == execution) {
        warm->last = before;
    }
    warm->queued--;
    return true;
}

bool warm_withdraw(struct warm *warm, struct execution *execution)
{
    bool taken;

    (void)pthread_mutex_lock(&warm->lock);
    taken = take_from_queue(warm, execution);
    (void)pthread_mutex_unlock(&warm->lock);
    if (!taken && pool_withdraw(warm->sandbox->pool, &execution->job)) {
        warm_next(warm); /* it was the owner to be */
        taken = true;
    }
    return taken;
}

/* Ends every queued cell: none of them ran. */
static void flush(struct warm *warm)
{
    struct execution *execution;

    do {
        struct err failure = ERR_INIT;

        (void)pthread_mutex_lock(&warm->lock);
        execution = pop(warm);
        refuse_dead(warm, &failure);
        (void)pthread_mutex_unlock(&warm->lock);
        if (execution != NULL) {
            admission_end(execution, &failure);
        }
    } while (execution != NULL);
}

/* ---- giving on ---- */

/* What the owner has to do next. */
enum turn { TURN_NOTHING, TURN_CELL, TURN_OPEN, TURN_CLOSE };

static enum turn choose(struct warm *warm, struct execution **ret_cell)
{
    enum turn turn = TURN_NOTHING;

    (void)pthread_mutex_lock(&warm->lock);
    if (warm->closing) {
        turn = TURN_CLOSE;
    } else if (warm->restarting) {
        turn = TURN_OPEN;
    } else if (warm->state != KERNELS_DEAD && (*ret_cell = pop(warm)) != NULL) {
        turn = TURN_CELL;
    } else {
        warm->owned = false;
        if (warm->state != KERNELS_DEAD) {
            warm->state = KERNELS_IDLE;
        }
    }
    (void)pthread_mutex_unlock(&warm->lock);
    return turn;
}

void warm_next(struct warm *warm)
{
    struct execution *cell = NULL;
    struct err failure = ERR_INIT;
    enum turn turn = choose(warm, &cell);
    struct pool_job *job = turn == TURN_CELL ? &cell->job : &warm->job;

    if (turn == TURN_NOTHING) {
        if (warm->state == KERNELS_DEAD) {
            flush(warm);
        }
        return;
    }
    if (turn != TURN_CELL) {
        (void)warm_ref(warm);
    }
    if (pool_submit(warm->sandbox->pool, job, &failure) == 0) {
        return;
    }
    if (turn == TURN_CELL) {
        admission_end(cell, &failure);
        warm_next(warm);
    } else {
        /* The lane is closed or full: this thread is as good as another for an ending. */
        job->run(job);
    }
}

/* ---- opening and closing ---- */

void warm_set_dead(struct warm *warm, const char *reason)
{
    (void)pthread_mutex_lock(&warm->lock);
    warm->state = KERNELS_DEAD;
    warm->ended_ms = clock_wall_ms();
    if (reason != NULL) {
        (void)snprintf(warm->reason, sizeof(warm->reason), "%.*s", (int)sizeof(warm->reason) - 1,
                       reason);
    }
    (void)pthread_mutex_unlock(&warm->lock);
    warm_box_record(warm);
}

static void settle_open(struct warm *warm, const struct err *failure)
{
    struct kernels_waiter *waiters;

    if (failure->code != ERR_NONE) {
        warm_set_dead(warm, failure->msg);
    }
    (void)pthread_mutex_lock(&warm->lock);
    if (failure->code == ERR_NONE) {
        (void)snprintf(warm->interpreter, sizeof(warm->interpreter), "%s",
                       kernel_interpreter(warm->kernel));
        warm->state = KERNELS_BUSY; /* until warm_next finds nothing to do */
        warm->used_ms = clock_wall_ms();
    }
    waiters = warm->waiters;
    warm->waiters = NULL;
    (void)pthread_mutex_unlock(&warm->lock);
    call_waiters(waiters);
}

static void open_now(struct warm *warm)
{
    struct err failure = ERR_INIT;

    warm_box_close(warm);
    (void)pthread_mutex_lock(&warm->lock);
    warm->restarting = false;
    warm->reason[0] = '\0';
    warm->ended_ms = 0;
    (void)pthread_mutex_unlock(&warm->lock);
    (void)warm_box_open(warm, &failure);
    settle_open(warm, &failure);
}

static void close_now(struct warm *warm)
{
    struct kernels_waiter *waiters;

    warm_box_close(warm);
    (void)pthread_mutex_lock(&warm->lock);
    if (warm->state != KERNELS_DEAD) {
        (void)snprintf(warm->reason, sizeof(warm->reason), "closed");
    }
    (void)pthread_mutex_unlock(&warm->lock);
    warm_set_dead(warm, NULL);
    (void)pthread_mutex_lock(&warm->lock);
    warm->owned = false;
    waiters = warm->waiters;
    warm->waiters = NULL;
    (void)pthread_mutex_unlock(&warm->lock);
    call_waiters(waiters);
    flush(warm);
    leave_session(warm);
    warm_box_forget(warm);
    kernels_table_remove(&warm->sandbox->kernels, warm);
}

static void job_run(struct pool_job *job)
{
    struct warm *warm = CONTAINER_OF(job, struct warm, job);
    bool closing;

    (void)pthread_mutex_lock(&warm->lock);
    closing = warm->closing;
    (void)pthread_mutex_unlock(&warm->lock);
    if (closing) {
        close_now(warm);
    } else {
        open_now(warm);
        warm_next(warm);
    }
    warm_unref(warm);
}

/* The server shuts down: nothing more is opened, but what runs must end. */
static void job_drop(struct pool_job *job)
{
    struct warm *warm = CONTAINER_OF(job, struct warm, job);

    (void)pthread_mutex_lock(&warm->lock);
    warm->closing = true;
    (void)pthread_mutex_unlock(&warm->lock);
    job_run(job);
}

int warm_start(struct warm *warm, struct err *err)
{
    warm->owned = true;
    warm->state = KERNELS_STARTING;
    if (pool_submit(warm->sandbox->pool, &warm_ref(warm)->job, err) < 0) {
        warm_unref(warm);
        leave_session(warm);
        return -1;
    }
    return 0;
}

/* Makes the present owner, or this thread as a new one, look at what it has to do. Unlocks. */
static void hurry(struct warm *warm)
{
    bool mine = !warm->owned;
    struct execution *current = warm->current == NULL ? NULL : execution_ref(warm->current);

    if (current != NULL) {
        cancel_fire(&current->cancel, CANCEL_SESSION_GONE);
        /* Nobody waits for its state: no grace. The interpreter lives while a cell is current. */
        (void)box_signal(kernel_box(warm->kernel), SIGKILL, true, NULL);
    }
    warm->owned = true;
    (void)pthread_mutex_unlock(&warm->lock);
    if (current != NULL) {
        execution_unref(current);
    }
    if (mine) {
        warm_next(warm);
    }
}

int warm_restart(struct warm *warm, struct kernels_waiter *waiter, struct err *err)
{
    (void)pthread_mutex_lock(&warm->lock);
    if (warm->closing) {
        refuse_dead(warm, err);
        (void)pthread_mutex_unlock(&warm->lock);
        return -1;
    }
    warm->restarting = true;
    warm->state = KERNELS_STARTING;
    if (waiter != NULL) {
        waiter->next = warm->waiters;
        warm->waiters = waiter;
    }
    (void)snprintf(warm->reason, sizeof(warm->reason), "restarted");
    (void)pthread_mutex_unlock(&warm->lock);
    flush(warm);
    (void)pthread_mutex_lock(&warm->lock);
    hurry(warm);
    return 0;
}

void warm_close(struct warm *warm)
{
    (void)pthread_mutex_lock(&warm->lock);
    if (warm->closing) {
        (void)pthread_mutex_unlock(&warm->lock);
        return;
    }
    warm->closing = true;
    cancel_fire(&warm->opening, CANCEL_SESSION_GONE);
    hurry(warm);
}

void warm_view(struct warm *warm, struct kernels_view *ret_view)
{
    struct kernels_view view = { .memory_bytes = -1 };

    (void)snprintf(view.id, sizeof(view.id), "%s", warm->id);
    (void)snprintf(view.session_id, sizeof(view.session_id), "%s", warm->session_id);
    (void)snprintf(view.language, sizeof(view.language), "%s", run_language_text(warm->language));
    view.timeout_s = warm->timeout_s;
    view.idle_timeout_s = warm->idle_timeout_s;
    view.ttl_s = warm->ttl_s;
    view.created_ms = warm->created_ms;
    (void)pthread_mutex_lock(&warm->lock);
    memcpy(view.interpreter, warm->interpreter, sizeof(view.interpreter));
    memcpy(view.reason, warm->reason, sizeof(view.reason));
    view.state = warm->state;
    view.cells = warm->cells;
    view.queued = warm->queued;
    view.used_ms = warm->used_ms;
    view.ended_ms = warm->ended_ms;
    (void)pthread_mutex_unlock(&warm->lock);
    *ret_view = view;
}

/* Makes this thread the owner of an idle kernel; false when it is not idle. */
static bool own_idle(struct warm *warm)
{
    bool mine;

    (void)pthread_mutex_lock(&warm->lock);
    mine = !warm->owned && warm->state != KERNELS_DEAD;
    warm->owned = warm->owned || mine;
    (void)pthread_mutex_unlock(&warm->lock);
    return mine;
}

void warm_tick(struct warm *warm, int64_t now_ms)
{
    double idle_s;

    if (!own_idle(warm)) {
        return;
    }
    idle_s = (double)(now_ms - warm->used_ms) / 1000;
    if (!warm_box_lives(warm)) {
        warm_box_bury(warm, BOX_STOP_EXITED, NULL);
    } else if (warm->ttl_s > 0 && idle_s >= warm->ttl_s) {
        (void)pthread_mutex_lock(&warm->lock);
        (void)snprintf(warm->reason, sizeof(warm->reason), "unused for %gs", warm->ttl_s);
        warm->closing = true;
        (void)pthread_mutex_unlock(&warm->lock);
    }
    warm_next(warm);
}
