/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: run jobs on a fixed set of threads, fairly between callers.
 * Owns: the threads, the queue; a job only from submit until it runs or is dropped.
 * Threads: any may call; jobs run on the pool's threads. One lock, held only for list work.
 * May include: libc.
 */
#include "lib/base/pool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/budget.h"
#include "lib/base/clock.h"
#include "lib/base/pool_internal.h"

/* A new duration counts for an eighth: some calls of another kind don't turn the estimate over. */
#define SERVICE_SHARE 8
/* Who comes back later than this finds another queue anyway. */
#define LONGEST_WAIT_S 60

/* Locked. */
static void settle(struct pool *pool, struct pool_worker *worker, bool settled)
{
    if (worker->settled != settled) {
        worker->settled = settled;
        pool->unsettled = settled ? pool->unsettled - 1 : pool->unsettled + 1;
    }
    if (!settled && !worker->ending) {
        worker->ending = true;
        worker->place.caller->ending++;
    }
}

/* Locked. Its job has run, and may be gone. */
static void leave(struct pool *pool, struct pool_worker *worker, int64_t began_ns)
{
    const int64_t took_ns = clock_mono_ns() - began_ns;

    settle(pool, worker, true);
    worker->place.caller->prompt -= worker->prompt ? 1 : 0;
    worker->place.caller->ending -= worker->ending ? 1 : 0;
    turns_leave(&pool->turns, &worker->place);
    pool->running--;
    pool->service_ns = pool->service_ns == 0
                           ? took_ns
                           : pool->service_ns + (took_ns - pool->service_ns) / SERVICE_SHARE;
}

/* Locked. Who is to be called when some job may start; NULL: nobody. Guests sit on seats whose
 * threads sleep. */
static struct sleeper *choose(struct pool *pool)
{
    return pool->turns.queued > 0 && pool->running < pool->seats && pool_turn_is(pool)
               ? sleepers_choose(&pool->sleepers)
               : NULL;
}

void pool_unlock_for_next(struct pool *pool)
{
    struct sleeper *sleeper = choose(pool);

    (void)pthread_mutex_unlock(&pool->lock);
    sleepers_call(sleeper);
}

void pool_leave_guest(struct pool *pool, struct pool_worker *worker, int64_t began_ns)
{
    (void)pthread_mutex_lock(&pool->lock);
    leave(pool, worker, began_ns);
    pool->guests--;
    if (pool->guests == 0) {
        (void)pthread_cond_signal(&pool->no_guests);
    }
    /* Within the lock: behind it, the pool and its threads may be gone. */
    sleepers_call(choose(pool));
    (void)pthread_mutex_unlock(&pool->lock);
}

static void *work(void *argument)
{
    struct pool_thread *self = argument;
    struct pool *pool = self->pool;

    pool_guest_enter(self);
    (void)pthread_mutex_lock(&pool->lock);
    while (!pool->ending) {
        struct pool_worker worker = { .settled = false };
        struct pool_job *job = pool_turn_take(pool, &worker);
        int64_t began_ns;

        if (job == NULL) {
            sleepers_wait(&pool->sleepers, &self->sleeper, &pool->lock);
            continue;
        }
        pool_unlock_for_next(pool); /* what ended may have made room for more than one */
        began_ns = clock_mono_ns();
        job->run(job);
        (void)pthread_mutex_lock(&pool->lock);
        leave(pool, &worker, began_ns);
        if (self->guest.job != NULL) {
            pool_unlock_for_next(pool);
            pool_guest_run(self);
            (void)pthread_mutex_lock(&pool->lock);
        }
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

int pool_start_thread(struct pool *pool)
{
    char name[16]; /* 15 characters and a NUL is all the kernel keeps (pthread_setname_np(3)) */
    struct pool_thread *started = alloc_zero(1, sizeof(*started));
    int failed;

    started->pool = pool;
    sleepers_init(&started->sleeper);
    failed = pthread_create(&started->thread, NULL, work, started);
    if (failed != 0) {
        sleepers_done(&started->sleeper);
        free(started);
        return failed;
    }
    started->next = pool->threads;
    pool->threads = started;
    (void)snprintf(name, sizeof(name), "%s-%u", pool->name, (unsigned)pool->thread_count % 100U);
    (void)pthread_setname_np(started->thread, name);
    pool->thread_count++;
    return 0;
}

struct pool *pool_new(const char *name, size_t threads, size_t queue_max, struct err *err)
{
    struct pool *pool = alloc_zero(1, sizeof(*pool));
    int failed = 0;

    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->no_guests, NULL);
    (void)snprintf(pool->name, sizeof(pool->name), "%.*s", POOL_NAME_MAX, name);
    pool->queue_max = queue_max;
    pool->seats = threads;
    for (size_t i = 0; i < threads && failed == 0; i++) {
        (void)pthread_mutex_lock(&pool->lock);
        failed = pool_start_thread(pool);
        (void)pthread_mutex_unlock(&pool->lock);
    }
    if (failed != 0) {
        (void)err_set(err, ERR_IO, failed, "can't start a thread: %s", err_errno_text(failed));
        pool_free(pool);
        return NULL;
    }
    return pool;
}

void pool_let_go(struct pool *pool, size_t away_max)
{
    (void)pthread_mutex_lock(&pool->lock);
    pool->away_max = away_max;
    (void)pthread_mutex_unlock(&pool->lock);
}

void pool_stay(struct pool *pool)
{
    (void)pthread_mutex_lock(&pool->lock);
    pool->stays = true;
    (void)pthread_mutex_unlock(&pool->lock);
}

void pool_set_rules(struct pool *pool, const struct pool_rules *rules)
{
    (void)pthread_mutex_lock(&pool->lock);
    pool->rules = *rules;
    (void)pthread_mutex_unlock(&pool->lock);
}

/* Locked. It will not start: what it waited for is free for others. */
static void forget_claim(struct pool *pool, const struct pool_job *job)
{
    if (job->claim != NULL && pool->rules.budget != NULL &&
        budget_forget(pool->rules.budget, job->claim)) {
        sleepers_call(sleepers_choose(&pool->sleepers));
    }
}

void pool_close(struct pool *pool)
{
    struct pool_job *dropped = NULL;
    struct pool_job **end = &dropped;
    struct pool_job *job;

    (void)pthread_mutex_lock(&pool->lock);
    pool->closed = true;
    while ((job = turns_pop(&pool->turns)) != NULL) {
        forget_claim(pool, job);
        *end = job;
        end = &job->next;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    /* Without the lock: drop may call the pool. */
    while (dropped != NULL) {
        struct pool_job *next = dropped->next;

        dropped->drop(dropped);
        dropped = next;
    }
}

void pool_end(struct pool *pool)
{
    pool_close(pool);
    (void)pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    sleepers_call_all(&pool->sleepers);
    while (pool->guests > 0) {
        (void)pthread_cond_wait(&pool->no_guests, &pool->lock);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    for (struct pool_thread *at = pool->threads; at != NULL; at = at->next) {
        (void)pthread_join(at->thread, NULL);
    }
    pool->seats = 0;
}

/* Not before: who submitted a job that came in time still calls the thread it chose. */
static void free_threads(struct pool *pool)
{
    while (pool->threads != NULL) {
        struct pool_thread *first = pool->threads;

        pool->threads = first->next;
        sleepers_done(&first->sleeper);
        free(first);
    }
}

void pool_free(struct pool *pool)
{
    if (pool == NULL) {
        return;
    }
    if (!pool->ending) {
        pool_end(pool);
    }
    free_threads(pool);
    (void)pthread_cond_destroy(&pool->no_guests);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* Locked. Seconds until so many waiting jobs have started, when so many run side by side. */
static int wait_s(const struct pool *pool, size_t waiting, size_t abreast)
{
    const double each_s = (double)pool->service_ns / (double)CLOCK_NS_PER_S;
    const double all_s = each_s * (double)(waiting + 1) / (double)(abreast > 0 ? abreast : 1);

    return all_s >= LONGEST_WAIT_S ? LONGEST_WAIT_S : 1 + (int)all_s;
}

/* Locked. Is there a place in the queue? 0 or -1. */
static int check_room(struct pool *pool, const struct pool_job *job, struct err *err)
{
    const struct pool_rules *rules = &pool->rules;
    const size_t queued = pool->turns.queued;
    const size_t own = turns_queued_of(&pool->turns, job->caller);
    /* As many of the queued jobs don't wait: they are being taken. */
    const size_t idle = pool->seats - pool->running;

    if (queued >= idle && queued - idle >= pool->queue_max) {
        (void)err_set(err, ERR_QUEUE_FULL, 0, "%zu calls are waiting already", queued);
        return err_retry_after(err, wait_s(pool, queued, pool->seats));
    }
    if (rules->queue_per_caller > 0 && own >= idle && own - idle >= rules->queue_per_caller) {
        (void)err_set(err, ERR_TOO_MANY_REQUESTS, 0, "%zu calls of this caller are waiting already",
                      own);
        return err_retry_after(
            err, wait_s(pool, own, rules->per_caller > 0 ? rules->per_caller : pool->seats));
    }
    return 0;
}

static int submit(struct pool *pool, struct pool_job *job, bool admitted, struct err *err)
{
    struct pool_thread *host = job->mobile ? pool_guest_host() : NULL;
    struct sleeper *sleeper = NULL;
    bool taken = false;
    int result = 0;

    /* The signal comes behind the lock, which the woken thread takes at once. */
    (void)pthread_mutex_lock(&pool->lock);
    if (pool->closed) {
        result = err_set(err, ERR_SHUTTING_DOWN, 0, "the server is shutting down");
    } else if (!admitted) {
        result = check_room(pool, job, err);
    }
    if (result == 0) {
        turns_put(&pool->turns, job);
        taken = host != NULL && pool->turns.queued == 1 && pool_guest_take(pool, job, host);
        sleeper = choose(pool);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    sleepers_call(sleeper);
    if (host != NULL && !taken) {
        pool_guest_stay(host);
    }
    return result;
}

int pool_submit(struct pool *pool, struct pool_job *job, struct err *err)
{
    return submit(pool, job, false, err);
}

int pool_resubmit(struct pool *pool, struct pool_job *job, struct err *err)
{
    return submit(pool, job, true, err);
}

void pool_settle(struct pool *pool, struct pool_job *job, bool settled)
{
    (void)pthread_mutex_lock(&pool->lock);
    settle(pool, job->worker, settled);
    pool_unlock_for_next(pool);
}

bool pool_goes_on(void)
{
    return pool_guest_taker() != NULL;
}

void pool_go_on(void)
{
    pool_guest_run(pool_guest_taker());
}

void pool_engage(struct pool *pool, bool engaged)
{
    (void)pthread_mutex_lock(&pool->lock);
    pool->unsettled = engaged ? pool->unsettled + 1 : pool->unsettled - 1;
    pool_unlock_for_next(pool);
}

void pool_wake(struct pool *pool)
{
    (void)pthread_mutex_lock(&pool->lock);
    sleepers_call(sleepers_choose(&pool->sleepers));
    (void)pthread_mutex_unlock(&pool->lock);
}

int pool_wait_s(struct pool *pool)
{
    int seconds;

    (void)pthread_mutex_lock(&pool->lock);
    seconds = wait_s(pool, pool->turns.queued, pool->seats);
    (void)pthread_mutex_unlock(&pool->lock);
    return seconds;
}

bool pool_withdraw(struct pool *pool, struct pool_job *job)
{
    bool found = false;

    (void)pthread_mutex_lock(&pool->lock);
    found = turns_remove(&pool->turns, job);
    if (found) {
        forget_claim(pool, job);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return found;
}

long pool_position(struct pool *pool, const struct pool_job *job)
{
    long position = -1;

    (void)pthread_mutex_lock(&pool->lock);
    position = turns_position(&pool->turns, job);
    (void)pthread_mutex_unlock(&pool->lock);
    return position;
}

void pool_stats(struct pool *pool, struct pool_stats *ret_stats)
{
    (void)pthread_mutex_lock(&pool->lock);
    *ret_stats = (struct pool_stats){ .threads = pool->seats,
                                      .running = pool->running,
                                      .queued = pool->turns.queued,
                                      .queue_max = pool->queue_max,
                                      .callers = turns_callers(&pool->turns),
                                      .service_ns = pool->service_ns };
    (void)pthread_mutex_unlock(&pool->lock);
}
