/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: a fixed number of threads and a bounded queue that is fair between callers.
 *
 * Jobs carry a caller key; the queue serves keys in turn (round robin), each key first in first
 * out, so that one caller's flood delays its own jobs only. The threads never end before
 * pool_free: a box dies with the thread that started it (PR_SET_PDEATHSIG, prctl(2)).
 */
#ifndef KERND_BASE_POOL_H
#define KERND_BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct pool;

/* Embedded by the caller in its own object; belongs to the pool from submit until run or drop. */
struct pool_job {
    void (*run)(struct pool_job *job);  /* on a pool thread; may free the job */
    void (*drop)(struct pool_job *job); /* instead of run when the pool is freed first */
    uint64_t caller;                    /* fairness key */
    struct pool_job *next;              /* the pool's own */
};

struct pool_stats {
    size_t threads;
    size_t running;
    size_t queued;
    size_t queue_max;
};

/*
 * name: up to 12 characters, shown by ps. queue_max: jobs that wait while all threads are busy, 0:
 * none. NULL with err when threads can't be made.
 */
struct pool *pool_new(const char *name, size_t threads, size_t queue_max, struct err *err);

/*
 * Runs no new job: queued ones are dropped; waits for running ones, joins, frees. NULL is fine.
 * pool_close alone does the first half (later submits fail), for a drain.
 */
void pool_close(struct pool *pool);
void pool_free(struct pool *pool);

/* Any thread, never blocks. 0, or -1 with QUEUE_FULL or SHUTTING_DOWN (the job stays the caller's).
 */
int pool_submit(struct pool *pool, struct pool_job *job, struct err *err);

/* As pool_submit for work that was admitted before: it never finds the queue full. */
int pool_resubmit(struct pool *pool, struct pool_job *job, struct err *err);

/*
 * Takes a job that has not started yet out of the queue. True: it is the caller's again. For this
 * and pool_position the caller keeps the job's memory alive, whether it still waits or not.
 */
bool pool_withdraw(struct pool *pool, struct pool_job *job);

/* How many jobs start before this one, 0: next; -1: not queued. */
long pool_position(struct pool *pool, const struct pool_job *job);

void pool_stats(struct pool *pool, struct pool_stats *ret_stats);

#endif
