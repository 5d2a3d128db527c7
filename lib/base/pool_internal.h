/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_internal: the body of a pool, for pool*.c alone.
 */
#ifndef KERND_BASE_POOL_INTERNAL_H
#define KERND_BASE_POOL_INTERNAL_H

#include <pthread.h>

#include "lib/base/pool.h"
#include "lib/base/sleepers.h"
#include "lib/base/turns.h"

#define POOL_NAME_MAX 12

struct pool_thread {
    struct pool *pool;
    struct sleeper sleeper;
    pthread_t thread;
};

/* While it has a job. */
struct pool_worker {
    struct turns_place place;
    bool prompt;  /* the job is within its caller's share */
    bool settled; /* it is in no costly part */
    bool ending;  /* it is in its last one */
};

/* Whose last job was its only one when it started, among those of others; began_ns 0: nobody's. */
struct pool_single {
    uint64_t caller;
    int64_t began_ns;
};

/* The last ones of two callers: beside whoever asks, that is one. */
#define POOL_SINGLES 2

/* All but the lock itself is under it. */
struct pool {
    pthread_mutex_t lock;
    struct sleepers sleepers;
    struct turns turns;
    struct pool_rules rules;
    struct pool_thread *threads;
    char name[POOL_NAME_MAX + 1];
    size_t thread_count;
    size_t running;
    size_t unsettled;
    size_t queue_max;
    int64_t service_ns;
    uint64_t started;     /* jobs, in all */
    uint64_t last_caller; /* of the job that started last */
    int64_t changed_ns;   /* when it was another one's turn than before; 0: never */
    struct pool_single singles[POOL_SINGLES]; /* who comes one at a time */
    bool closed;                              /* takes and starts no job */
    bool ending;                              /* threads return */
};

/* Locked. The next job that may start, which counts as running from here; NULL: none. */
struct pool_job *pool_turn_take(struct pool *pool, struct pool_worker *worker);

#endif
