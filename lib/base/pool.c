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

#define LONGEST_NAME 12

/* The waiting jobs of one caller; exists only while there are any. */
struct lane {
    uint64_t caller;
    struct pool_job *first;
    struct pool_job *last;
    struct lane *next;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct lane *lanes; /* in the order in which they are served next */
    pthread_t *threads;
    char name[LONGEST_NAME + 1];
    size_t thread_count;
    size_t running;
    size_t queued;
    size_t queue_max;
    bool closed; /* takes and starts no job */
    bool ending; /* threads return */
};

static struct lane *lane_of(struct pool *pool, uint64_t caller)
{
    struct lane *lane = pool->lanes;

    while (lane != NULL && lane->caller != caller) {
        lane = lane->next;
    }
    return lane;
}

static void put_lane_last(struct pool *pool, struct lane *lane)
{
    struct lane **end = &pool->lanes;

    while (*end != NULL) {
        end = &(*end)->next;
    }
    lane->next = NULL;
    *end = lane;
}

static void remove_lane(struct pool *pool, struct lane *lane)
{
    struct lane **at = &pool->lanes;

    while (*at != lane) {
        at = &(*at)->next;
    }
    *at = lane->next;
}

static void enqueue(struct pool *pool, struct pool_job *job)
{
    struct lane *lane = lane_of(pool, job->caller);

    if (lane == NULL) {
        lane = alloc_zero(1, sizeof(*lane));
        lane->caller = job->caller;
        put_lane_last(pool, lane);
    }
    job->next = NULL;
    if (lane->first == NULL) {
        lane->first = job;
    } else {
        lane->last->next = job;
    }
    lane->last = job;
    pool->queued++;
}

/* The job at the head of the lane whose turn it is; the lane goes to the back. */
static struct pool_job *dequeue(struct pool *pool)
{
    struct lane *lane = pool->lanes;
    struct pool_job *job = lane->first;

    pool->lanes = lane->next;
    lane->first = job->next;
    pool->queued--;
    if (lane->first == NULL) {
        free(lane);
    } else {
        put_lane_last(pool, lane);
    }
    job->next = NULL;
    return job;
}

static void *work(void *argument)
{
    struct pool *pool = argument;

    (void)pthread_mutex_lock(&pool->lock);
    while (!pool->ending) {
        struct pool_job *job = NULL;

        if (pool->queued == 0) {
            (void)pthread_cond_wait(&pool->wake, &pool->lock);
            continue;
        }
        job = dequeue(pool);
        pool->running++;
        (void)pthread_mutex_unlock(&pool->lock);
        job->run(job);
        (void)pthread_mutex_lock(&pool->lock);
        pool->running--;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static int start_thread(struct pool *pool)
{
    char name[16]; /* 15 characters and a NUL is all the kernel keeps (pthread_setname_np(3)) */
    int failed = pthread_create(&pool->threads[pool->thread_count], NULL, work, pool);

    if (failed != 0) {
        return failed;
    }
    (void)snprintf(name, sizeof(name), "%s-%u", pool->name, (unsigned)pool->thread_count % 100U);
    (void)pthread_setname_np(pool->threads[pool->thread_count], name);
    pool->thread_count++;
    return 0;
}

struct pool *pool_new(const char *name, size_t threads, size_t queue_max, struct err *err)
{
    struct pool *pool = alloc_zero(1, sizeof(*pool));

    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->wake, NULL);
    (void)snprintf(pool->name, sizeof(pool->name), "%.*s", LONGEST_NAME, name);
    pool->threads = alloc_zero(threads, sizeof(*pool->threads));
    pool->queue_max = queue_max;
    for (size_t i = 0; i < threads; i++) {
        int failed = start_thread(pool);

        if (failed != 0) {
            (void)err_set(err, ERR_IO, failed, "can't start a thread: %s", err_errno_text(failed));
            pool_free(pool);
            return NULL;
        }
    }
    return pool;
}

void pool_close(struct pool *pool)
{
    struct pool_job *dropped = NULL;
    struct pool_job **end = &dropped;

    (void)pthread_mutex_lock(&pool->lock);
    pool->closed = true;
    while (pool->queued > 0) {
        *end = dequeue(pool);
        end = &(*end)->next;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    /* Without the lock: drop may call the pool. */
    while (dropped != NULL) {
        struct pool_job *next = dropped->next;

        dropped->drop(dropped);
        dropped = next;
    }
}

void pool_free(struct pool *pool)
{
    if (pool == NULL) {
        return;
    }
    pool_close(pool);
    (void)pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    (void)pthread_cond_broadcast(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->thread_count; i++) {
        (void)pthread_join(pool->threads[i], NULL);
    }
    (void)pthread_cond_destroy(&pool->wake);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}

static int submit(struct pool *pool, struct pool_job *job, size_t queue_max, struct err *err)
{
    int result = 0;
    size_t idle;

    /* The signal comes behind the lock, which the woken thread takes at once. */
    (void)pthread_mutex_lock(&pool->lock);
    /* As many of the queued jobs as there are idle threads don't wait: they are just being taken.
     */
    idle = pool->thread_count - pool->running;
    if (pool->closed) {
        result = err_set(err, ERR_SHUTTING_DOWN, 0, "the server is shutting down");
    } else if (pool->queued >= idle && pool->queued - idle >= queue_max) {
        result = err_set(err, ERR_QUEUE_FULL, 0, "%zu calls are waiting already", pool->queued);
    } else {
        enqueue(pool, job);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (result == 0) {
        (void)pthread_cond_signal(&pool->wake);
    }
    return result;
}

int pool_submit(struct pool *pool, struct pool_job *job, struct err *err)
{
    return submit(pool, job, pool->queue_max, err);
}

int pool_resubmit(struct pool *pool, struct pool_job *job, struct err *err)
{
    return submit(pool, job, SIZE_MAX, err);
}

/* The job before this one in its lane, itself when it is first, NULL when it is not there. */
static struct pool_job *before_in_lane(struct lane *lane, const struct pool_job *job)
{
    struct pool_job *before = lane->first;

    if (before == job) {
        return before;
    }
    while (before != NULL && before->next != job) {
        before = before->next;
    }
    return before;
}

static bool withdraw_locked(struct pool *pool, struct pool_job *job)
{
    struct lane *lane = lane_of(pool, job->caller);
    struct pool_job *before = lane == NULL ? NULL : before_in_lane(lane, job);

    if (before == NULL) {
        return false;
    }
    if (before == job) {
        lane->first = job->next;
    } else {
        before->next = job->next;
    }
    if (lane->last == job) {
        lane->last = before;
    }
    if (lane->first == NULL) {
        remove_lane(pool, lane);
        free(lane);
    }
    pool->queued--;
    job->next = NULL;
    return true;
}

bool pool_withdraw(struct pool *pool, struct pool_job *job)
{
    bool found = false;

    (void)pthread_mutex_lock(&pool->lock);
    found = withdraw_locked(pool, job);
    (void)pthread_mutex_unlock(&pool->lock);
    return found;
}

static long place_in_lane(const struct lane *lane, const struct pool_job *job)
{
    long place = 0;

    for (const struct pool_job *at = lane->first; at != job; at = at->next) {
        if (at == NULL) {
            return -1;
        }
        place++;
    }
    return place;
}

static long lane_length(const struct lane *lane, long at_most)
{
    long length = 0;

    for (const struct pool_job *at = lane->first; at != NULL && length < at_most; at = at->next) {
        length++;
    }
    return length;
}

/*
 * In the round in which the job runs, each earlier lane has had one turn more than the job's own
 * lane had before it, each later lane as many.
 */
static long position_locked(struct pool *pool, const struct pool_job *job)
{
    const struct lane *own = lane_of(pool, job->caller);
    long place = own == NULL ? -1 : place_in_lane(own, job);
    long position = place;
    bool earlier = true;

    for (const struct lane *lane = pool->lanes; place >= 0 && lane != NULL; lane = lane->next) {
        if (lane == own) {
            earlier = false;
        } else {
            position += lane_length(lane, earlier ? place + 1 : place);
        }
    }
    return position;
}

long pool_position(struct pool *pool, const struct pool_job *job)
{
    long position = -1;

    (void)pthread_mutex_lock(&pool->lock);
    position = position_locked(pool, job);
    (void)pthread_mutex_unlock(&pool->lock);
    return position;
}

void pool_stats(struct pool *pool, struct pool_stats *ret_stats)
{
    (void)pthread_mutex_lock(&pool->lock);
    ret_stats->threads = pool->thread_count;
    ret_stats->running = pool->running;
    ret_stats->queued = pool->queued;
    ret_stats->queue_max = pool->queue_max;
    (void)pthread_mutex_unlock(&pool->lock);
}
