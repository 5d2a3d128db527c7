/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: a fixed number of threads and a bounded queue that is fair between callers.
 *
 * Jobs carry a caller and a group (a session); callers are served in turn, and so are the groups of
 * one (turns.h). struct pool_rules bounds what one of them can hold, so that a flood delays the
 * jobs of its own caller only. The threads never end before pool_free: a box dies with the thread
 * that started it (PR_SET_PDEATHSIG, prctl(2)).
 *
 * A job that a thread of another pool submits may run on that very thread, once the job that
 * submitted it is done: nobody needs to be woken, which takes longer than what many jobs do. It
 * counts as running in its own pool from the moment it was taken, by the same rules as any; in the
 * other pool the thread is `away`, and another one takes its place (pool_let_go).
 */
#ifndef KERND_BASE_POOL_H
#define KERND_BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct budget;
struct budget_claim;
struct pool;
struct pool_worker;

/* Embedded by the caller in its own object; belongs to the pool from submit until run or drop. */
struct pool_job {
    void (*run)(struct pool_job *job);  /* on a pool thread; may free the job */
    void (*drop)(struct pool_job *job); /* instead of run when the pool is freed first */
    uint64_t caller;
    uint64_t group;             /* of its caller's jobs; 0 is one as any other */
    struct budget_claim *claim; /* NULL, or it starts when this can be raised to need */
    uint64_t need;
    bool mobile;           /* it may run on the thread that submits it: it starts no process */
    bool favoured;         /* when it runs: none of its caller waits, and it competes with no other
                            * caller or is its caller's only one */
    struct pool_job *next; /* the pool's own, as what follows */
    struct pool_worker *worker; /* while it runs */
};

/*
 * What one caller may hold; zero fields: no bound of that kind.
 *
 * Starting and ending a job costs most of its processor time, and more of that at once than there
 * are processors makes all of them late. So of each caller `prompt` jobs start at once; those
 * beyond start only while fewer than `unsettled` jobs of the pool are in such a part (pool_settle),
 * or when no other job of the caller waits and those that run are in their last part: who comes one
 * at a time does not wait for what is behind his answers. While callers compete, all but these wait
 * until one job fewer is in such a part, or none; of its share, each caller still gets one started
 * behind any four of others.
 */
struct pool_rules {
    size_t per_caller; /* jobs that run at the same time */
    size_t per_group;
    size_t prompt;
    size_t unsettled;
    size_t queue_per_caller;         /* jobs that wait */
    struct budget *budget;           /* of the claims */
    void (*short_of)(void *context); /* a claim waits; called with the pool locked: no blocking */
    void *context;
};

struct pool_stats {
    size_t threads;
    size_t running;
    size_t queued;
    size_t queue_max;
    size_t callers;     /* who have jobs that wait or run */
    int64_t service_ns; /* how long jobs took lately, a moving mean; 0: none ended yet */
};

/*
 * name: up to 12 characters, shown by ps. queue_max: jobs that wait while all threads are busy, 0:
 * none. NULL with err when threads can't be made.
 */
struct pool *pool_new(const char *name, size_t threads, size_t queue_max, struct err *err);

/* Before the first job. Borrows the budget. */
void pool_set_rules(struct pool *pool, const struct pool_rules *rules);

/*
 * Before the first job: up to so many threads of this pool may be away with jobs of others. As many
 * more are made, each when it is needed first.
 */
void pool_let_go(struct pool *pool, size_t away_max);

/*
 * Before the first job: threads of this pool go on with such jobs within their own (pool_go_on), so
 * none is ever away.
 */
void pool_stay(struct pool *pool);

/*
 * Runs no new job: queued ones are dropped; waits for running ones, joins, frees. NULL is fine.
 * pool_close alone does the first part, pool_end all but to free it, for a drain: later submits
 * fail. pool_end once, by one thread.
 */
void pool_close(struct pool *pool);
void pool_end(struct pool *pool);
void pool_free(struct pool *pool);

/*
 * Any thread, never blocks. 0, or -1 (the job stays the caller's) with SHUTTING_DOWN, QUEUE_FULL,
 * or TOO_MANY_REQUESTS when the rest of the queue is for other callers; the latter two with the
 * time after which a place should be free, from how long jobs took lately.
 */
int pool_submit(struct pool *pool, struct pool_job *job, struct err *err);

/* As pool_submit for work that was admitted before: it never finds the queue full. */
int pool_resubmit(struct pool *pool, struct pool_job *job, struct err *err);

/*
 * The costly part of this job's start is over, or (settled: false) that of its end begins. By the
 * job itself while it runs; idempotent.
 */
void pool_settle(struct pool *pool, struct pool_job *job, bool settled);

/*
 * By a job while it runs: has its thread taken one of another pool, to go on with behind it?
 * pool_go_on runs that here and now, with all that comes of it: this job keeps its seat meanwhile.
 */
bool pool_goes_on(void);
void pool_go_on(void);

/*
 * A thread that is none of the pool's begins what is as costly as such a part, or is through with
 * it (engaged: false): it counts among the unsettled jobs, and is held back by none.
 */
void pool_engage(struct pool *pool, bool engaged);

/* Something that jobs wait for (their claims) may be there now. */
void pool_wake(struct pool *pool);

/* Seconds, at least 1, after which a job that waits now should have started. */
int pool_wait_s(struct pool *pool);

/*
 * Takes a job that has not started yet out of the queue. True: it is the caller's again. For this
 * and pool_position the caller keeps the job's memory alive, whether it still waits or not.
 */
bool pool_withdraw(struct pool *pool, struct pool_job *job);

/* How many jobs start before this one, 0: next; -1: not queued. */
long pool_position(struct pool *pool, const struct pool_job *job);

void pool_stats(struct pool *pool, struct pool_stats *ret_stats);

/* What one caller has of the pool now, and could have at most. */
struct pool_share {
    size_t running;
    size_t running_max;
    size_t queued;
    size_t queued_max;
    size_t room; /* so many more of its jobs would be taken in now */
};
void pool_share(struct pool *pool, uint64_t caller, struct pool_share *ret_share);

#endif
