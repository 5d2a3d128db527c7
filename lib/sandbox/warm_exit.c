/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_exit: pushing a kernel's cells and its interpreter out.
 * Owns: nothing that lasts.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/warm_exit.h"

#include <signal.h>

#include "lib/box/box.h"
#include "lib/cell/kernel.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/warm.h"

/* What has to be told once the lock is gone: references. */
struct leavers {
    struct execution *cells[WARM_QUEUE_MAX + 1];
    size_t count;
    bool mine; /* the caller owns the kernel now */
};

/* Locked. Nobody waits for the state of the interpreter any more: no grace. */
static void push_out(struct warm *warm, struct leavers *leavers)
{
    leavers->count = 0;
    for (struct execution *at = warm->queue.first; at != NULL; at = at->next_cell) {
        leavers->cells[leavers->count++] = execution_ref(at);
    }
    if (warm->current != NULL) {
        leavers->cells[leavers->count++] = execution_ref(warm->current);
        cancel_fire(&warm->current->cancel, CANCEL_KERNEL_GONE);
    }
    if (warm->running && warm->kernel != NULL) {
        /* It may be in the grace time of an interrupt, deaf to the token. */
        (void)box_signal(kernel_box(warm->kernel), SIGKILL, true, NULL);
    }
    leavers->mine = !warm->owned;
    warm->owned = true;
}

static void see_out(struct warm *warm, const struct leavers *leavers)
{
    for (size_t i = 0; i < leavers->count; i++) {
        execution_cancel(leavers->cells[i], CANCEL_KERNEL_GONE);
        execution_unref(leavers->cells[i]);
    }
    if (leavers->mine) {
        warm_next(warm);
    }
}

int warm_exit_restart(struct warm *warm, struct kernels_waiter *waiter, struct err *err)
{
    struct leavers leavers = { .count = 0 };

    (void)pthread_mutex_lock(&warm->lock);
    if (warm->closing) {
        (void)warm_refuse(warm, err);
        (void)pthread_mutex_unlock(&warm->lock);
        return -1;
    }
    waiter->next = warm->waiters;
    warm->waiters = waiter;
    /* One that is just starting is clean already. */
    warm->restarting = warm->restarting || warm->state != KERNELS_STARTING;
    warm->state = KERNELS_STARTING;
    push_out(warm, &leavers);
    (void)pthread_mutex_unlock(&warm->lock);
    see_out(warm, &leavers);
    return 0;
}

void warm_exit_close(struct warm *warm)
{
    struct leavers leavers = { .count = 0 };
    bool first;

    (void)pthread_mutex_lock(&warm->lock);
    first = !warm->closing;
    if (first) {
        warm->closing = true;
        cancel_fire(&warm->opening, CANCEL_KERNEL_GONE);
        push_out(warm, &leavers);
    }
    (void)pthread_mutex_unlock(&warm->lock);
    if (first) {
        see_out(warm, &leavers);
    }
}
