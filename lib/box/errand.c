/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: hand a function to a pool and wait for its end.
 * Owns: nothing beyond the call.
 * Threads: any but the pool's.
 * May include: base.
 */
#include "lib/box/errand.h"

#include <pthread.h>
#include <stdbool.h>

struct errand {
    struct pool_job job; /* first: a job is its errand */
    void (*run)(void *context);
    void *context;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
    bool dropped;
};

/* Under the lock: the waiter frees the errand as soon as it has seen the end. */
static void finish(struct errand *errand, bool dropped)
{
    (void)pthread_mutex_lock(&errand->lock);
    errand->over = true;
    errand->dropped = dropped;
    (void)pthread_cond_signal(&errand->ended);
    (void)pthread_mutex_unlock(&errand->lock);
}

static void run_errand(struct pool_job *job)
{
    struct errand *errand = (struct errand *)job;

    errand->run(errand->context);
    finish(errand, false);
}

static void drop_errand(struct pool_job *job)
{
    finish((struct errand *)job, true);
}

int errand_run(struct pool *pool, void (*run)(void *context), void *context, struct err *err)
{
    struct errand errand = { .job = { .run = run_errand, .drop = drop_errand },
                             .run = run,
                             .context = context,
                             .lock = PTHREAD_MUTEX_INITIALIZER,
                             .ended = PTHREAD_COND_INITIALIZER };

    if (pool_resubmit(pool, &errand.job, err) < 0) {
        return -1;
    }
    (void)pthread_mutex_lock(&errand.lock);
    while (!errand.over) {
        (void)pthread_cond_wait(&errand.ended, &errand.lock);
    }
    (void)pthread_mutex_unlock(&errand.lock);
    (void)pthread_cond_destroy(&errand.ended);
    (void)pthread_mutex_destroy(&errand.lock);
    return errand.dropped ? err_set(err, ERR_SHUTTING_DOWN, 0, "the server is shutting down") : 0;
}
