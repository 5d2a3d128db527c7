/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm: one kernel of a session: its queue of cells, and the box that runs them. For lib/sandbox.
 *
 * Blocking work (opening, cells, closing) is done by run threads, one at a time per kernel: whoever
 * makes it busy owns the interpreter until warm_next gives it on. Lock order: kernels, then warm.
 */
#ifndef KERND_SANDBOX_WARM_H
#define KERND_SANDBOX_WARM_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/cancel.h"
#include "lib/base/pool.h"
#include "lib/sandbox/kernels.h"

struct kernel;

#define WARM_QUEUE_MAX 64

struct warm {
    atomic_int references;
    char id[SESSION_ID_SIZE];
    struct sandbox *sandbox;
    char session_id[SESSION_ID_SIZE];
    struct session_hold *session; /* held until it is closed; its owner's */
    enum run_language language;
    double timeout_s;
    double idle_timeout_s;
    double ttl_s;
    int64_t created_ms;
    struct pool_job job; /* opening, closing */
    struct cancel opening;

    pthread_mutex_t lock;
    enum kernels_state state;
    bool owned;      /* a thread works with the interpreter */
    bool restarting; /* the next owner opens a fresh one */
    bool closing;    /* the next owner closes it for good */
    char reason[256];
    char interpreter[64];
    uint64_t cells;
    int64_t used_ms;
    int64_t ended_ms;
    struct execution *current; /* running; borrowed: it is live */
    struct execution *first;   /* queued cells, linked by next_cell */
    struct execution *last;
    size_t queued;
    struct kernels_waiter *waiters;

    struct kernel *kernel; /* the owner's */

    struct warm *next; /* the table's */
};

struct warm *warm_ref(struct warm *warm);
void warm_unref(struct warm *warm);

/*
 * A kernel that is not started yet, with one reference; takes the hold over. NULL with err IO (the
 * hold is given back).
 */
struct warm *warm_new(struct sandbox *sandbox, struct session_hold *hold,
                      const struct kernels_options *options, struct err *err);

/* Sends the opening to the run lane. 0, or -1 QUEUE_FULL, SHUTTING_DOWN. */
int warm_start(struct warm *warm, struct err *err);

/* Queues a cell, or sends it to the run lane at once. 0, or -1 KERNEL_DEAD, QUEUE_FULL. */
int warm_enqueue(struct warm *warm, struct execution *execution, struct err *err);

/* Takes a cell out of the queue: true, it will not run. */
bool warm_withdraw(struct warm *warm, struct execution *execution);

/* The owner is done: the next cell, a restart, the end, or idleness. */
void warm_next(struct warm *warm);

/* As kernels_restart and kernels_delete; they return at once, the work follows. */
int warm_restart(struct warm *warm, struct kernels_waiter *waiter, struct err *err);
void warm_close(struct warm *warm);

/* For warm_box.h: the interpreter is gone, and why (NULL: as the reason field says already). */
void warm_set_dead(struct warm *warm, const char *reason);

void warm_wait(struct warm *warm, struct kernels_waiter *waiter);
void warm_view(struct warm *warm, struct kernels_view *ret_view);

/* One look of the janitor: freezes an idle one, closes an old one, notices a death. */
void warm_tick(struct warm *warm, int64_t now_ms);

#endif
