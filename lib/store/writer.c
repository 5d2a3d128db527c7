/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer: the queue of small writes and the thread that commits them in batches.
 * Owns: the thread, the queued jobs.
 * Threads: any; the jobs run on the writer's.
 * May include: base.
 */
#include "lib/store/writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/store/store_internal.h"

#define GATHER_MS 20
#define RETRY_MS 500
/* How long the thread looks by itself after it had something to write: to wake it would take more
 * of a call's time than to queue what it is to write. */
#define LINGER_MS 1000
#define QUEUE_MAX 8192
#define LATEST 256 /* a power of 2 */

struct writer {
    struct store *store;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;  /* it is asleep and something was queued, a flush waits, or the end */
    pthread_cond_t tried; /* a batch was tried */
    struct writer_job *first;
    struct writer_job **last;
    struct writer_job *latest[LATEST]; /* queued, by a hash of `row`; the last of each hash */
    size_t queued;
    uint64_t submitted; /* jobs ever */
    uint64_t settled;   /* of those: written or dropped */
    uint64_t attempts;
    uint64_t dropped;
    uint64_t hurry; /* attempts up to this number are made without gathering: somebody waits */
    bool asleep;    /* the thread does not look by itself */
    bool closing;
    struct err failure; /* of the last attempt; ERR_NONE when it worked */
};

static void wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t deadline)
{
    struct timespec until = { .tv_sec = deadline / CLOCK_NS_PER_S,
                              .tv_nsec = deadline % CLOCK_NS_PER_S };

    (void)pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &until);
}

/* Locked. Where the last one that writes such a row is. */
static struct writer_job **latest_of(struct writer *writer, const struct writer_job *job)
{
    unsigned hash = 0;

    for (const char *at = job->row; *at != '\0'; at++) {
        hash = hash * 31 + (unsigned char)*at;
    }
    return &writer->latest[hash % LATEST];
}

/* Locked. One that waits to write the same row need not: both are in the same batch. */
static void outdo(struct writer *writer, struct writer_job *job)
{
    struct writer_job **latest = latest_of(writer, job);

    if (*latest != NULL && (*latest)->write == job->write && text_equal((*latest)->row, job->row)) {
        (*latest)->outdone = true;
    }
    *latest = job;
}

static struct writer_job *pop(struct writer *writer)
{
    struct writer_job *job = writer->first;

    if (job->row != NULL && *latest_of(writer, job) == job) {
        *latest_of(writer, job) = NULL;
    }
    writer->first = job->next;
    if (writer->first == NULL) {
        writer->last = &writer->first;
    }
    writer->queued--;
    return job;
}

/* One transaction for a list of jobs. 0, or -1 and nothing is written. */
static int write_all(struct store *store, struct writer_job *jobs, struct err *err)
{
    int result;

    store_enter(store);
    result = store_begin(store, err);
    if (result == 0) {
        for (struct writer_job *job = jobs; job != NULL && result == 0; job = job->next) {
            result = job->outdone ? 0 : job->write(store, job, err);
        }
        if (result == 0) {
            result = store_commit(store, err);
        } else {
            store_rollback(store);
        }
    }
    store_leave(store);
    return result;
}

static void drop_all(struct writer_job *jobs)
{
    while (jobs != NULL) {
        struct writer_job *next = jobs->next;

        jobs->drop(jobs);
        jobs = next;
    }
}

/* Puts a batch that failed back to the front, the oldest dropped above the maximum. */
static void put_back(struct writer *writer, struct writer_job *batch, size_t count)
{
    struct writer_job *end = batch;

    while (end->next != NULL) {
        end = end->next;
    }
    end->next = writer->first;
    if (writer->first == NULL) {
        writer->last = &end->next;
    }
    writer->first = batch;
    writer->queued += count;
    while (writer->queued > QUEUE_MAX && writer->first != NULL) {
        struct writer_job *oldest = pop(writer);

        oldest->drop(oldest);
        writer->dropped++;
        writer->settled++;
    }
}

/* Takes the whole queue and tries it; called and returns with the lock held. */
static void try_batch(struct writer *writer)
{
    struct writer_job *batch = writer->first;
    size_t count = writer->queued;
    struct err failure = ERR_INIT;
    int result;

    writer->first = NULL;
    writer->last = &writer->first;
    memset(writer->latest, 0, sizeof(writer->latest));
    writer->queued = 0;
    (void)pthread_mutex_unlock(&writer->lock);
    result = write_all(writer->store, batch, &failure);
    if (result == 0) {
        drop_all(batch);
    }
    (void)pthread_mutex_lock(&writer->lock);
    writer->failure = failure;
    writer->attempts++;
    if (result == 0) {
        writer->settled += count;
        if (writer->first == NULL) {
            writer->hurry = writer->attempts; /* whoever waited was served */
        }
    } else {
        put_back(writer, batch, count);
    }
    (void)pthread_cond_broadcast(&writer->tried);
}

/* Locked. Waits for something to write; returns until when more of it is gathered. */
static int64_t wait_for_work(struct writer *writer)
{
    const int64_t linger = clock_deadline_after_ms(LINGER_MS);
    int64_t deadline =
        clock_deadline_after_ms(writer->failure.code == ERR_NONE ? GATHER_MS : RETRY_MS);

    while (writer->first == NULL && !writer->closing) {
        if (clock_passed(linger)) {
            writer->asleep = true;
            (void)pthread_cond_wait(&writer->work, &writer->lock);
            writer->asleep = false;
            deadline = clock_deadline_after_ms(GATHER_MS);
        } else {
            deadline = clock_deadline_after_ms(GATHER_MS);
            wait_until(&writer->work, &writer->lock, deadline);
        }
    }
    return deadline;
}

static void *run(void *context)
{
    struct writer *writer = context;

    (void)pthread_mutex_lock(&writer->lock);
    for (;;) {
        const int64_t deadline = wait_for_work(writer);

        while (writer->attempts >= writer->hurry && !writer->closing && !clock_passed(deadline)) {
            wait_until(&writer->work, &writer->lock, deadline);
        }
        if (writer->first != NULL) {
            try_batch(writer);
        }
        if (writer->closing && (writer->first == NULL || writer->failure.code != ERR_NONE)) {
            break;
        }
    }
    (void)pthread_mutex_unlock(&writer->lock);
    return NULL;
}

struct writer *writer_new(struct store *store, struct err *err)
{
    struct writer *writer = alloc_zero(1, sizeof(*writer));
    int sys;

    writer->store = store;
    writer->last = &writer->first;
    (void)pthread_mutex_init(&writer->lock, NULL);
    (void)pthread_cond_init(&writer->work, NULL);
    (void)pthread_cond_init(&writer->tried, NULL);
    sys = pthread_create(&writer->thread, NULL, run, writer);
    if (sys != 0) {
        (void)err_set(err, ERR_IO, sys, "the store's thread can't be made: %s",
                      err_errno_text(sys));
        free(writer);
        return NULL;
    }
    (void)pthread_setname_np(writer->thread, "store");
    return writer;
}

void writer_free(struct writer *writer)
{
    if (writer == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&writer->lock);
    writer->closing = true;
    (void)pthread_cond_signal(&writer->work);
    (void)pthread_mutex_unlock(&writer->lock);
    (void)pthread_join(writer->thread, NULL);
    drop_all(writer->first);
    (void)pthread_cond_destroy(&writer->work);
    (void)pthread_cond_destroy(&writer->tried);
    (void)pthread_mutex_destroy(&writer->lock);
    free(writer);
}

void writer_submit(struct writer *writer, struct writer_job *job)
{
    job->next = NULL;
    (void)pthread_mutex_lock(&writer->lock);
    if (writer->asleep) {
        (void)pthread_cond_signal(&writer->work);
    }
    *writer->last = job;
    writer->last = &job->next;
    if (job->row != NULL) {
        outdo(writer, job);
    }
    writer->queued++;
    writer->submitted++;
    (void)pthread_mutex_unlock(&writer->lock);
}

int writer_flush(struct writer *writer, struct err *err)
{
    uint64_t target;
    uint64_t attempts;
    int result = 0;

    (void)pthread_mutex_lock(&writer->lock);
    target = writer->submitted;
    /* A batch that was taken before this call may be the first attempt, and not hold all. */
    attempts = writer->attempts + 2;
    if (writer->settled < target && writer->hurry < attempts) {
        writer->hurry = attempts;
        (void)pthread_cond_signal(&writer->work);
    }
    while (writer->settled < target && writer->attempts < attempts) {
        (void)pthread_cond_wait(&writer->tried, &writer->lock);
    }
    if (writer->settled < target) {
        if (err != NULL) {
            *err = writer->failure;
        }
        result = -1;
    }
    (void)pthread_mutex_unlock(&writer->lock);
    return result;
}

int writer_check(struct writer *writer, struct err *err)
{
    int result = 0;

    (void)pthread_mutex_lock(&writer->lock);
    if (writer->failure.code != ERR_NONE) {
        if (err != NULL) {
            *err = writer->failure;
        }
        result = -1;
    }
    (void)pthread_mutex_unlock(&writer->lock);
    return result;
}

void writer_stats(struct writer *writer, struct store_stats *ret_stats)
{
    (void)pthread_mutex_lock(&writer->lock);
    ret_stats->queued = writer->queued;
    ret_stats->dropped = writer->dropped;
    (void)pthread_mutex_unlock(&writer->lock);
}
