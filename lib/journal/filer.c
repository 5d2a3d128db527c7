/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filer: a queue of ended logs and the thread that writes them.
 * Owns: the thread, a reference to each queued tape.
 * Threads: any.
 * May include: base.
 */
#include "lib/journal/filer.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/journal/journal_internal.h"
#include "lib/journal/tape_internal.h"

#define GATHER_MS 10 /* the thread wakes once for the logs of so long a time */
#define SAVE_MS 20   /* as long as small events are joined; most logs are written once or twice */
/* How long the thread looks by itself after it had something to do: to wake it would take more of a
 * call's time than to append an event. */
#define LINGER_MS 1000

struct filer {
    struct journal *journal;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t done;
    struct tape *first; /* ended ones */
    struct tape **last;
    struct tape *first_to_save; /* in the order of their time */
    struct tape **last_to_save;
    uint64_t submitted;
    uint64_t settled;
    uint64_t failed;
    size_t flushing;
    bool asleep; /* the thread does not look by itself */
    bool closing;
};

/* True if it is written. Its memory is given back if it is not short: nobody appends any more. */
static bool file_tape(struct filer *filer, struct tape *tape)
{
    bool filed;

    (void)pthread_mutex_lock(&tape->lock);
    filed = tape_spill(tape) == 0;
    if (filed && tape->fd >= 0) {
        buf_done(&tape->memory);
    }
    if (!filed) { /* the disk is full: half a log would look like one cut short by a crash */
        tape_erase(tape);
    }
    (void)pthread_mutex_unlock(&tape->lock);
    journal_forget(filer->journal, tape);
    return filed;
}

/* Called and returns with the lock held. */
static void file_one(struct filer *filer)
{
    struct tape *tape = filer->first;
    bool filed;

    filer->first = tape->next_to_file;
    if (filer->first == NULL) {
        filer->last = &filer->first;
    }
    (void)pthread_mutex_unlock(&filer->lock);
    filed = file_tape(filer, tape);
    tape_unref(tape);
    (void)pthread_mutex_lock(&filer->lock);
    filer->settled++;
    filer->failed += filed ? 0 : 1;
    (void)pthread_cond_broadcast(&filer->done);
}

/* Called and returns with the lock held. */
static void save_one(struct filer *filer)
{
    struct tape *tape = filer->first_to_save;

    filer->first_to_save = tape->next_to_save;
    if (filer->first_to_save == NULL) {
        filer->last_to_save = &filer->first_to_save;
    }
    (void)pthread_mutex_unlock(&filer->lock);
    (void)pthread_mutex_lock(&tape->lock);
    tape->saving = false;
    /* One that has ended is written by file_tape, or was. */
    if (!tape->finished) {
        tape_save(tape);
    }
    (void)pthread_mutex_unlock(&tape->lock);
    tape_unref(tape);
    (void)pthread_mutex_lock(&filer->lock);
}

static void wait_until(struct filer *filer, int64_t deadline)
{
    struct timespec until = { .tv_sec = deadline / CLOCK_NS_PER_S,
                              .tv_nsec = deadline % CLOCK_NS_PER_S };

    (void)pthread_cond_clockwait(&filer->work, &filer->lock, CLOCK_MONOTONIC, &until);
}

static bool has_to_save(const struct filer *filer)
{
    return filer->first_to_save != NULL &&
           (filer->closing || clock_passed(filer->first_to_save->save_deadline));
}

static void wait_for_work(struct filer *filer)
{
    const int64_t linger = clock_deadline_after_ms(LINGER_MS);

    while (filer->first == NULL && !filer->closing && !has_to_save(filer)) {
        if (filer->first_to_save != NULL) {
            wait_until(filer, filer->first_to_save->save_deadline);
        } else if (!clock_passed(linger)) {
            wait_until(filer, clock_deadline_after_ms(GATHER_MS));
        } else {
            filer->asleep = true;
            (void)pthread_cond_wait(&filer->work, &filer->lock);
            filer->asleep = false;
        }
    }
}

static void *run(void *context)
{
    struct filer *filer = context;

    (void)pthread_mutex_lock(&filer->lock);
    while (!filer->closing || filer->first != NULL || filer->first_to_save != NULL) {
        int64_t deadline;

        wait_for_work(filer);
        deadline = has_to_save(filer) ? 0 : clock_deadline_after_ms(GATHER_MS);
        while (filer->flushing == 0 && !filer->closing && !clock_passed(deadline)) {
            wait_until(filer, deadline);
        }
        while (filer->first != NULL) {
            file_one(filer);
        }
        while (has_to_save(filer)) {
            save_one(filer);
        }
    }
    (void)pthread_mutex_unlock(&filer->lock);
    return NULL;
}

struct filer *filer_new(struct journal *journal, struct err *err)
{
    struct filer *filer = alloc_zero(1, sizeof(*filer));
    int sys;

    filer->journal = journal;
    filer->last = &filer->first;
    filer->last_to_save = &filer->first_to_save;
    (void)pthread_mutex_init(&filer->lock, NULL);
    (void)pthread_cond_init(&filer->work, NULL);
    (void)pthread_cond_init(&filer->done, NULL);
    sys = pthread_create(&filer->thread, NULL, run, filer);
    if (sys != 0) {
        (void)err_set(err, ERR_IO, sys, "the journal's thread can't be made: %s",
                      err_errno_text(sys));
        free(filer);
        return NULL;
    }
    (void)pthread_setname_np(filer->thread, "journal");
    return filer;
}

void filer_free(struct filer *filer)
{
    if (filer == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&filer->lock);
    filer->closing = true;
    (void)pthread_cond_signal(&filer->work);
    (void)pthread_mutex_unlock(&filer->lock);
    (void)pthread_join(filer->thread, NULL);
    (void)pthread_cond_destroy(&filer->work);
    (void)pthread_cond_destroy(&filer->done);
    (void)pthread_mutex_destroy(&filer->lock);
    free(filer);
}

void filer_submit(struct filer *filer, struct tape *tape)
{
    tape->next_to_file = NULL;
    (void)tape_ref(tape);
    (void)pthread_mutex_lock(&filer->lock);
    if (filer->asleep) {
        (void)pthread_cond_signal(&filer->work);
    }
    *filer->last = tape;
    filer->last = &tape->next_to_file;
    filer->submitted++;
    (void)pthread_mutex_unlock(&filer->lock);
}

void filer_save_later(struct filer *filer, struct tape *tape)
{
    tape->next_to_save = NULL;
    tape->save_deadline = clock_deadline_after_ms(SAVE_MS);
    (void)tape_ref(tape);
    (void)pthread_mutex_lock(&filer->lock);
    if (filer->asleep) {
        (void)pthread_cond_signal(&filer->work);
    }
    *filer->last_to_save = tape;
    filer->last_to_save = &tape->next_to_save;
    (void)pthread_mutex_unlock(&filer->lock);
}

void filer_flush(struct filer *filer)
{
    uint64_t target;

    (void)pthread_mutex_lock(&filer->lock);
    target = filer->submitted;
    filer->flushing++;
    (void)pthread_cond_signal(&filer->work);
    while (filer->settled < target) {
        (void)pthread_cond_wait(&filer->done, &filer->lock);
    }
    filer->flushing--;
    (void)pthread_mutex_unlock(&filer->lock);
}

uint64_t filer_failed(struct filer *filer)
{
    uint64_t failed;

    (void)pthread_mutex_lock(&filer->lock);
    failed = filer->failed;
    (void)pthread_mutex_unlock(&filer->lock);
    return failed;
}
