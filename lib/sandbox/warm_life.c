/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_life: opening, freezing, waking, dying, closing of a kernel.
 * Owns: the kernel's hold on its session.
 * Threads: the owner of the kernel.
 * May include: all of lib.
 */
#include "lib/sandbox/warm_life.h"

#include <stdio.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/box/box.h"
#include "lib/cell/kernel.h"
#include "lib/sandbox/admission.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/warm.h"
#include "lib/sandbox/warm_box.h"

/* So long a dead kernel says why it died; nobody may ever ask. */
#define DEAD_KEPT_MS (INT64_C(24) * 3600 * 1000)
/* So long after its last cell a kernel counts with what it uses, and no more with what it may. */
#define MEASURE_AFTER_S 1

/* ---- the session ---- */

static int hold_session(struct warm *warm, struct err *err)
{
    static const struct session_actor everybody = { .all = true };

    return warm->session != NULL
               ? 0
               : session_hold(warm->sandbox, &everybody, warm->session_id, &warm->session, err);
}

/* The session's own idle time begins here. */
static void leave_session(struct warm *warm)
{
    session_release(CLEANUP_TAKE(warm->session), true);
}

/* ---- sleep ---- */

static void freeze(struct warm *warm)
{
    if (box_freeze(kernel_box(warm->kernel), true, NULL) == 0) {
        warm->frozen = true;
        leave_session(warm);
    }
}

static void thaw(struct warm *warm)
{
    if (warm->frozen && warm->kernel != NULL) {
        (void)box_freeze(kernel_box(warm->kernel), false, NULL);
    }
    warm->frozen = false;
}

int warm_life_wake(struct warm *warm, struct err *err)
{
    if (hold_session(warm, err) < 0) {
        return -1;
    }
    thaw(warm);
    warm->measured = false; /* the cell's turn raised the claim */
    return 0;
}

/* Once: the memory that an idle interpreter does not use is others' to use. */
static void measure(struct warm *warm)
{
    const int64_t bytes = warm->measured ? -1 : box_memory(kernel_box(warm->kernel));

    if (bytes >= 0) {
        warm->measured = true;
        capacity_give(warm->sandbox, &warm->memory, (uint64_t)bytes);
    }
}

/* ---- opening ---- */

static void clear(struct warm *warm)
{
    thaw(warm);
    warm_box_close(warm, true);
    warm->measured = false;
    (void)pthread_mutex_lock(&warm->lock);
    warm->restarting = false;
    warm->reason[0] = '\0';
    warm->ended_ms = 0;
    (void)pthread_mutex_unlock(&warm->lock);
}

static void begin_life(struct warm *warm)
{
    (void)pthread_mutex_lock(&warm->lock);
    (void)snprintf(warm->interpreter, sizeof(warm->interpreter), "%s",
                   kernel_interpreter(warm->kernel));
    if (!warm->restarting && !warm->closing) {
        warm->state = KERNELS_IDLE;
    }
    warm->opened = true;
    warm->used_ms = clock_wall_ms();
    warm->used_ns = clock_mono_ns();
    (void)pthread_mutex_unlock(&warm->lock);
    warm_box_record(warm);
}

/* Somebody wants it gone: what came of the opening is of no interest any more. */
static bool is_closing(struct warm *warm)
{
    bool closing;

    (void)pthread_mutex_lock(&warm->lock);
    closing = warm->closing;
    (void)pthread_mutex_unlock(&warm->lock);
    return closing;
}

bool warm_life_open(struct warm *warm)
{
    struct err failure = ERR_INIT;

    clear(warm);
    if (hold_session(warm, &failure) == 0 && warm_box_open(warm, &failure) == 0) {
        begin_life(warm);
        warm_tell(warm, NULL, false);
        return true;
    }
    if (is_closing(warm)) {
        return true;
    }
    if (!warm->opened) {
        (void)pthread_mutex_lock(&warm->lock);
        warm->closing = true;
        (void)pthread_mutex_unlock(&warm->lock);
        warm_life_close(warm, &failure);
        return false;
    }
    warm_life_die(warm, failure.msg);
    warm_tell(warm, &failure, false);
    return true;
}

/* ---- the end ---- */

static void set_dead(struct warm *warm, const char *reason, bool settled)
{
    (void)pthread_mutex_lock(&warm->lock);
    if (settled || !(warm->restarting || warm->closing)) {
        warm->state = KERNELS_DEAD;
    }
    warm->ended_ms = clock_wall_ms();
    (void)snprintf(warm->reason, sizeof(warm->reason), "%.*s", (int)sizeof(warm->reason) - 1,
                   reason);
    (void)pthread_mutex_unlock(&warm->lock);
}

void warm_life_die(struct warm *warm, const char *reason)
{
    set_dead(warm, reason, false);
    capacity_give(warm->sandbox, &warm->memory, 0);
    warm_box_record(warm);
    leave_session(warm);
}

/* It is in the table no more: nobody can add to these. */
static void end_queue(struct warm *warm, const struct err *failure)
{
    struct warm_queue queue;
    struct execution *cell;

    (void)pthread_mutex_lock(&warm->lock);
    queue = warm->queue;
    warm->queue = (struct warm_queue){ .count = 0 };
    (void)pthread_mutex_unlock(&warm->lock);
    while ((cell = warm_queue_take(&queue)) != NULL) {
        admission_refuse(cell, failure);
    }
}

void warm_life_close(struct warm *warm, const struct err *failure)
{
    const bool stopping = sandbox_closing(warm->sandbox);
    struct err removed = ERR_INIT;

    thaw(warm);
    /* A server that stops may have many, and little time. */
    warm_box_close(warm, !stopping);
    capacity_give(warm->sandbox, &warm->memory, 0);
    if (warm->ended_ms == 0 || !stopping) {
        set_dead(warm, stopping ? "lost: the server was stopped" : "removed", true);
    }
    leave_session(warm);
    if (stopping) {
        warm_box_record(warm);
    } else {
        warm_box_forget(warm);
    }
    kernels_table_remove(&warm->sandbox->kernels, warm);
    if (failure == NULL) {
        (void)err_set(&removed, ERR_KERNEL_DEAD, 0, "the kernel was removed");
        failure = &removed;
    }
    end_queue(warm, failure);
    warm_tell(warm, failure, true);
}

/* ---- time ---- */

/* An end that DELETE has not asked for leaves a kernel that tells it. */
static void close_unused(struct warm *warm)
{
    char reason[64];

    (void)snprintf(reason, sizeof(reason), "closed: unused for its ttlS of %g", warm->ttl_s);
    thaw(warm);
    warm_box_close(warm, true);
    warm_life_die(warm, reason);
}

static void forget_if_old(struct warm *warm)
{
    if (clock_wall_ms() - warm->ended_ms > DEAD_KEPT_MS) {
        (void)pthread_mutex_lock(&warm->lock);
        warm->closing = true;
        (void)pthread_mutex_unlock(&warm->lock);
    }
}

/* False: it is dead. */
static bool look(struct warm *warm)
{
    const struct warm_death death = { .stop = box_look(kernel_box(warm->kernel)), .idle = true };
    const bool alive = death.stop == BOX_STOP_PEER_DONE;

    if (!alive) {
        warm_box_bury(warm, &death, NULL);
    }
    return alive;
}

void warm_life_check(struct warm *warm)
{
    if (warm->kernel != NULL && !warm->frozen) {
        (void)look(warm);
    }
}

void warm_life_tick(struct warm *warm, int64_t now_ns)
{
    const double idle_s = (double)(now_ns - warm->used_ns) / (double)CLOCK_NS_PER_S;

    if (warm->kernel == NULL) {
        forget_if_old(warm);
    } else if (!look(warm)) {
        return;
    } else if (warm->ttl_s > 0 && idle_s >= warm->ttl_s) {
        close_unused(warm);
    } else if (!warm->frozen && warm->idle_timeout_s > 0 && idle_s >= warm->idle_timeout_s) {
        freeze(warm);
    } else if (idle_s >= MEASURE_AFTER_S) {
        measure(warm);
    }
}
