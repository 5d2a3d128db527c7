/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm: whose turn it is in a kernel: its cells, its opening, its end, or nobody's.
 * Owns: the queue, the state, a reference of the cell whose turn it is.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/warm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/box/box.h"
#include "lib/cell/kernel.h"
#include "lib/sandbox/admission.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/warm_life.h"

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

static void set_options(struct warm *warm, const struct kernels_options *options)
{
    warm->language = options->language;
    warm->limits = session_hold_options(warm->session)->limits;
    if (options->timeout_s > 0) {
        warm->limits.timeout_s = options->timeout_s;
    }
    warm->idle_timeout_s = options->idle_timeout_s;
    warm->ttl_s = options->ttl_s;
}

struct warm *warm_new(struct sandbox *sandbox, struct session_hold *hold, const char *id,
                      const struct kernels_options *options, struct err *err)
{
    struct warm *warm = alloc_zero(1, sizeof(*warm));

    if (cancel_init(&warm->opening, err) < 0) {
        session_release(hold, false);
        free(warm);
        return NULL;
    }
    (void)pthread_mutex_init(&warm->lock, NULL);
    atomic_init(&warm->references, 1);
    (void)snprintf(warm->id, sizeof(warm->id), "%s", id);
    warm->sandbox = sandbox;
    warm->session = hold;
    warm->caller = session_hold_entry(hold)->caller;
    (void)snprintf(warm->session_id, sizeof(warm->session_id), "%s", session_hold_id(hold));
    set_options(warm, options);
    warm->created_ms = clock_wall_ms();
    warm->used_ms = warm->created_ms;
    warm->used_ns = clock_mono_ns();
    warm->state = KERNELS_STARTING;
    warm->owned = true;
    warm->job.run = job_run;
    warm->job.drop = job_drop;
    warm->job.caller = warm->caller;
    warm->job.group = capacity_group(warm->session_id);
    warm->memory.lasting = true;
    return warm;
}

/* ---- waiters ---- */

bool warm_wait(struct warm *warm, struct kernels_waiter *waiter)
{
    bool gone;

    (void)pthread_mutex_lock(&warm->lock);
    gone = warm->gone;
    if (!gone) {
        waiter->next = warm->waiters;
        warm->waiters = waiter;
    }
    (void)pthread_mutex_unlock(&warm->lock);
    return !gone;
}

void warm_tell(struct warm *warm, const struct err *failure, bool gone)
{
    struct kernels_waiter *waiter;

    (void)pthread_mutex_lock(&warm->lock);
    warm->gone = gone;
    waiter = warm->waiters;
    warm->waiters = NULL;
    (void)pthread_mutex_unlock(&warm->lock);
    while (waiter != NULL) {
        struct kernels_waiter *next = waiter->next; /* done may free it */

        waiter->done(waiter, failure);
        waiter = next;
    }
}

/* ---- cells ---- */

/* Locked. */
int warm_refuse(const struct warm *warm, struct err *err)
{
    (void)err_set(err, ERR_KERNEL_DEAD, 0, "the kernel is dead: %s",
                  warm->reason[0] == '\0' ? "it is being removed" : warm->reason);
    return err_remedy(err, "POST to its /restart for a clean interpreter under the same id");
}

/* Locked. From here until the end of its turn. */
static void give_turn(struct warm *warm, struct execution *execution)
{
    warm->current = execution_ref(execution);
    warm->state = KERNELS_BUSY;
}

/* Not locked: its job needs the lock at once. It is the cell's turn, which passes if it fails. */
static int send_at_once(struct warm *warm, struct execution *execution, struct err *err)
{
    if (pool_submit(warm->sandbox->pool, &execution->job, err) < 0) {
        warm_next(warm);
        return -1;
    }
    return 0;
}

int warm_enqueue(struct warm *warm, struct execution *execution, struct err *err)
{
    bool at_once = false;
    int result = 0;

    (void)pthread_mutex_lock(&warm->lock);
    if (warm->state == KERNELS_DEAD || warm->closing) {
        result = warm_refuse(warm, err);
    } else if (!warm->owned) {
        at_once = true;
        warm->owned = true;
        give_turn(warm, execution);
    } else if (warm->queue.count >= WARM_QUEUE_MAX) {
        result = err_set(err, ERR_QUEUE_FULL, 0, "%d cells wait for this kernel already",
                         WARM_QUEUE_MAX);
    } else {
        warm_queue_put(&warm->queue, execution);
    }
    (void)pthread_mutex_unlock(&warm->lock);
    return at_once ? send_at_once(warm, execution, err) : result;
}

bool warm_withdraw(struct warm *warm, struct execution *execution)
{
    bool taken;

    (void)pthread_mutex_lock(&warm->lock);
    taken = warm_queue_remove(&warm->queue, execution);
    (void)pthread_mutex_unlock(&warm->lock);
    if (!taken && pool_withdraw(warm->sandbox->pool, &execution->job)) {
        warm_next(warm); /* it was its turn */
        taken = true;
    }
    return taken;
}

long warm_position(struct warm *warm, struct execution *execution)
{
    long position;

    (void)pthread_mutex_lock(&warm->lock);
    position = warm_queue_position(&warm->queue, execution);
    position += position >= 0 && warm->current != NULL ? 1 : 0;
    if (position < 0 && warm->current == execution && !warm->running) {
        position = 0;
    }
    (void)pthread_mutex_unlock(&warm->lock);
    return position;
}

struct execution *warm_running(struct warm *warm)
{
    struct execution *cell = NULL;

    (void)pthread_mutex_lock(&warm->lock);
    if (warm->running) {
        cell = execution_ref(warm->current);
    }
    (void)pthread_mutex_unlock(&warm->lock);
    return cell;
}

/* ---- turns ---- */

enum turn_kind { TURN_NOBODY, TURN_CELL, TURN_OPEN, TURN_CLOSE };

struct turn {
    enum turn_kind kind;
    struct execution *cell;
    struct execution *before;  /* whose turn it was */
    struct warm_queue dropped; /* cells that came too late */
    struct err why;
};

static void choose(struct warm *warm, struct turn *turn)
{
    (void)pthread_mutex_lock(&warm->lock);
    turn->before = warm->current;
    warm->current = NULL;
    if (warm->closing) {
        turn->kind = TURN_CLOSE;
    } else if (warm->restarting) {
        turn->kind = TURN_OPEN;
    } else if (warm->state == KERNELS_DEAD) {
        turn->dropped = warm->queue;
        warm->queue = (struct warm_queue){ .count = 0 };
        (void)warm_refuse(warm, &turn->why);
        warm->owned = false;
    } else if ((turn->cell = warm_queue_take(&warm->queue)) != NULL) {
        turn->kind = TURN_CELL;
        give_turn(warm, turn->cell);
    } else {
        warm->owned = false;
        warm->state = warm->frozen ? KERNELS_FROZEN : KERNELS_IDLE;
    }
    (void)pthread_mutex_unlock(&warm->lock);
}

/* False: the lane is closed, and the turn has passed. */
static bool send_cell(struct warm *warm, struct execution *cell)
{
    struct err failure = ERR_INIT;

    if (pool_resubmit(warm->sandbox->pool, &cell->job, &failure) == 0) {
        return true;
    }
    admission_refuse(cell, &failure);
    return false;
}

/* What ends needs nothing to end. */
static void set_need(struct warm *warm)
{
    (void)pthread_mutex_lock(&warm->lock);
    warm->job.claim = warm->closing ? NULL : &warm->memory;
    (void)pthread_mutex_unlock(&warm->lock);
    warm->job.need = capacity_need(&warm->limits);
}

static void send_job(struct warm *warm)
{
    struct pool_job *job = &warm_ref(warm)->job;

    set_need(warm);
    if (pool_resubmit(warm->sandbox->pool, job, NULL) < 0) {
        job->drop(job);
    }
}

void warm_next(struct warm *warm)
{
    struct turn turn;
    bool given;

    do {
        struct execution *dropped;

        turn = (struct turn){ .kind = TURN_NOBODY };
        choose(warm, &turn);
        execution_unref(turn.before);
        while ((dropped = warm_queue_take(&turn.dropped)) != NULL) {
            admission_refuse(dropped, &turn.why);
        }
        given = turn.kind != TURN_CELL || send_cell(warm, turn.cell);
    } while (!given);
    if (turn.kind == TURN_OPEN || turn.kind == TURN_CLOSE) {
        send_job(warm);
    }
}

static void job_run(struct pool_job *job)
{
    struct warm *warm = CONTAINER_OF(job, struct warm, job);
    bool closing;

    (void)pthread_mutex_lock(&warm->lock);
    closing = warm->closing;
    (void)pthread_mutex_unlock(&warm->lock);
    if (closing) {
        warm_life_close(warm, NULL);
    } else if (warm_life_open(warm)) {
        warm_next(warm);
    }
    warm_unref(warm);
}

/* The server shuts down: nothing more is opened, but what there is must end. */
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
    set_need(warm);
    if (pool_submit(warm->sandbox->pool, &warm_ref(warm)->job, err) < 0) {
        warm_fail_start(warm);
        warm_unref(warm);
        return -1;
    }
    return 0;
}

void warm_fail_start(struct warm *warm)
{
    (void)pthread_mutex_lock(&warm->lock);
    warm->closing = true;
    warm->waiters = NULL;
    (void)pthread_mutex_unlock(&warm->lock);
    warm_life_close(warm, NULL);
}

/* ---- looks ---- */

void warm_view(struct warm *warm, struct kernels_view *ret_view)
{
    struct kernels_view view = { .memory_bytes = -1 };

    (void)snprintf(view.id, sizeof(view.id), "%s", warm->id);
    (void)snprintf(view.session_id, sizeof(view.session_id), "%s", warm->session_id);
    (void)snprintf(view.language, sizeof(view.language), "%s", run_language_text(warm->language));
    view.timeout_s = warm->limits.timeout_s;
    view.idle_timeout_s = warm->idle_timeout_s;
    view.ttl_s = warm->ttl_s;
    view.created_ms = warm->created_ms;
    (void)pthread_mutex_lock(&warm->lock);
    memcpy(view.interpreter, warm->interpreter, sizeof(view.interpreter));
    memcpy(view.reason, warm->reason, sizeof(view.reason));
    view.state = warm->state;
    view.cells = warm->cells;
    view.queued = warm->queue.count;
    view.used_ms = warm->used_ms;
    view.ended_ms = warm->ended_ms;
    if (warm->kernel != NULL) {
        view.memory_bytes = box_memory(kernel_box(warm->kernel));
    }
    (void)pthread_mutex_unlock(&warm->lock);
    *ret_view = view;
}

void warm_tick(struct warm *warm, int64_t now_ns)
{
    bool mine;

    (void)pthread_mutex_lock(&warm->lock);
    mine = !warm->owned;
    warm->owned = true;
    (void)pthread_mutex_unlock(&warm->lock);
    if (mine) {
        warm_life_tick(warm, now_ns);
        warm_next(warm);
    }
}
