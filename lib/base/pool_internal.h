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

/* A job of another pool's, taken already. */
struct pool_guest {
    struct pool *pool;
    struct pool_job *job; /* NULL: there is none */
    struct pool_worker worker;
};

struct pool_thread {
    struct pool *pool;
    struct sleeper sleeper;
    pthread_t thread;
    struct pool_thread *next;
    struct pool_guest guest; /* what it goes on with; its own */
    bool away;               /* it has such a job, or may get one; its own */
    bool running_guest;      /* its own */
};

/* All but the lock itself is under it. */
struct pool {
    pthread_mutex_t lock;
    struct sleepers sleepers;
    struct turns turns;
    struct pool_rules rules;
    struct pool_thread *threads; /* a list */
    char name[POOL_NAME_MAX + 1];
    size_t thread_count;
    size_t seats; /* jobs that may run at the same time: its threads, but for those in away_max */
    size_t away_max;
    size_t away;   /* threads that run, or are about to run, jobs of other pools */
    size_t guests; /* jobs that run, or are about to run, on threads of other pools */
    pthread_cond_t no_guests;
    size_t running; /* guests, too */
    size_t unsettled;
    size_t queue_max;
    int64_t service_ns;
    uint64_t started;     /* jobs, in all */
    uint64_t last_caller; /* of the job that started last */
    int64_t changed_ns;   /* when it was another one's turn than before; 0: never */
    struct pool_single singles[POOL_SINGLES]; /* who comes one at a time */
    bool stays;                               /* its threads go on within their jobs */
    bool closed;                              /* takes and starts no job */
    bool ending;                              /* threads return */
};

/* Locked. One more thread: 0 or an errno. */
int pool_start_thread(struct pool *pool);

/* A guest has run, and may be gone; what waited may start now. Locks. */
void pool_leave_guest(struct pool *pool, struct pool_worker *worker, int64_t began_ns);

/* Locked, and no more behind it: wakes a thread if some job may start. */
void pool_unlock_for_next(struct pool *pool);

/* ---- pool_guest.c ---- */

/* The calling thread is this one from here on. */
void pool_guest_enter(struct pool_thread *self);

/* The calling thread, if it has taken a job of another pool's; NULL. */
struct pool_thread *pool_guest_taker(void);

/* The calling thread, if it may go on with a job of another pool's: away from now on. NULL. */
struct pool_thread *pool_guest_host(void);

/* It gets none. */
void pool_guest_stay(struct pool_thread *host);

/* Locked (the job's pool). Takes the only job that waits, for a host. False: it may not start. */
bool pool_guest_take(struct pool *pool, struct pool_job *job, struct pool_thread *host);

/* Runs what it goes on with, until there is nothing more, and comes back. */
void pool_guest_run(struct pool_thread *host);

/* ---- pool_turn.c ---- */

/*
 * Locked. Is it the turn of any caller who waits? Memory is not asked for. A thread that is woken
 * for nothing costs two switches, and in a flood there is one at each start and end of a job.
 */
bool pool_turn_is(const struct pool *pool);

/* Locked. The next job that may start, which counts as running from here; NULL: none. */
struct pool_job *pool_turn_take(struct pool *pool, struct pool_worker *worker);

#endif
