/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm: one kernel of a session: its state, its queue of cells, whose turn it is. For lib/sandbox.
 *
 * Blocking work with the interpreter (warm_life.h: opening, closing; warm_cell.h: cells) is done by
 * one thread at a time: whoever makes the kernel `owned` has it until warm_next gives it on. Only
 * run threads open interpreters, since a box dies with the thread that started it. Lock order: the
 * table of kernels, then a kernel; a kernel's lock is not held while anything blocks.
 */
#ifndef KERND_SANDBOX_WARM_H
#define KERND_SANDBOX_WARM_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/budget.h"
#include "lib/base/cancel.h"
#include "lib/base/pool.h"
#include "lib/sandbox/kernels.h"
#include "lib/sandbox/warm_queue.h"

struct kernel;

#define WARM_QUEUE_MAX 64

struct warm {
    atomic_int references;
    char id[SESSION_ID_SIZE];
    char session_id[SESSION_ID_SIZE];
    struct sandbox *sandbox;
    uint64_t caller; /* whose session it is */
    enum run_language language;
    struct limits limits; /* of the box; time and output: of cells that say nothing else */
    double idle_timeout_s;
    double ttl_s;
    int64_t created_ms;
    struct pool_job job;        /* opening, closing */
    struct budget_claim memory; /* of its box: what it may use, or uses while it is idle */
    struct cancel opening;      /* fired when it is closed */

    pthread_mutex_t lock;
    enum kernels_state state;
    bool owned;      /* a thread works with the interpreter, or is about to */
    bool opened;     /* it was idle once: from then on a failure leaves it dead, not gone */
    bool restarting; /* the next owner opens a fresh interpreter */
    bool closing;    /* the next owner closes it for good */
    bool gone;       /* it was closed */
    char reason[256];
    char interpreter[64];
    uint64_t cells;
    int64_t used_ms;
    int64_t used_ns; /* the same, monotonic */
    int64_t ended_ms;
    struct execution *current; /* the cell whose turn it is: one reference */
    bool running;              /* it has begun */
    struct warm_queue queue;
    struct kernels_waiter *waiters;
    struct kernel *kernel; /* the owner's; set and cleared under the lock */

    struct session_hold *session; /* the owner's: while the interpreter lives and is not frozen */
    bool frozen;                  /* the owner's */
    bool measured;                /* the owner's: the claim is what the idle interpreter uses */
    struct run_enforced enforced; /* the owner's: of the present box */

    struct warm *next; /* the table's */
};

struct warm *warm_ref(struct warm *warm);
void warm_unref(struct warm *warm);

/*
 * A kernel that is not started yet, owned by the caller, with one reference; takes the hold over.
 * NULL with err IO (the hold is given back).
 */
struct warm *warm_new(struct sandbox *sandbox, struct session_hold *hold, const char *id,
                      const struct kernels_options *options, struct err *err);

/*
 * Sends the opening of a new kernel to the run lane. 0, or -1 QUEUE_FULL, SHUTTING_DOWN: the kernel
 * is closed then.
 */
int warm_start(struct warm *warm, struct err *err);

/* Closes one that was never started; no waiter is called. */
void warm_fail_start(struct warm *warm);

/* Queues a cell, or sends it to the run lane at once. 0, or -1 KERNEL_DEAD, QUEUE_FULL. */
int warm_enqueue(struct warm *warm, struct execution *execution, struct err *err);

/* Takes a cell out of the queue: true, it will not run. */
bool warm_withdraw(struct warm *warm, struct execution *execution);

/* How many cells go before it; -1: it does not wait. */
long warm_position(struct warm *warm, struct execution *execution);

/* The owner is done: the next cell, a restart, the end, or idleness. */
void warm_next(struct warm *warm);

/* The cell that runs, with one reference; NULL: none does. */
struct execution *warm_running(struct warm *warm);

/* -1 KERNEL_DEAD and why it died; under the lock. */
int warm_refuse(const struct warm *warm, struct err *err);

/* Adds a waiter for the opening, or the end, that is to come. False: it is gone already. */
bool warm_wait(struct warm *warm, struct kernels_waiter *waiter);
/* Calls the waiters; failure NULL: the interpreter is idle. gone: nothing else will come. */
void warm_tell(struct warm *warm, const struct err *failure, bool gone);

void warm_view(struct warm *warm, struct kernels_view *ret_view);

/* One look of the janitor: freezes an idle one, closes an old one, notices a death. */
void warm_tick(struct warm *warm, int64_t now_ns);

#endif
