/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alarm: a sorted list of deadlines and the thread that waits for the first.
 * Owns: the thread; entries are their callers'.
 * Threads: any; one lock, not held while something rings.
 * May include: libc.
 */
#include "lib/base/alarm.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"

struct alarm {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the first deadline, ending, or what rings */
    pthread_t thread;
    struct alarm_entry *first;
    struct alarm_entry *ringing;
    bool ending;
};

static void take_out(struct alarm *alarm, struct alarm_entry *entry)
{
    struct alarm_entry **at = &alarm->first;

    while (*at != entry) {
        at = &(*at)->next;
    }
    *at = entry->next;
    entry->set = false;
}

static void wait_for_first(struct alarm *alarm)
{
    struct timespec until;

    if (alarm->first == NULL || alarm->first->deadline == CLOCK_NEVER) {
        (void)pthread_cond_wait(&alarm->changed, &alarm->lock);
        return;
    }
    until = (struct timespec){ .tv_sec = alarm->first->deadline / CLOCK_NS_PER_S,
                               .tv_nsec = alarm->first->deadline % CLOCK_NS_PER_S };
    (void)pthread_cond_clockwait(&alarm->changed, &alarm->lock, CLOCK_MONOTONIC, &until);
}

static void ring_first(struct alarm *alarm)
{
    struct alarm_entry *entry = alarm->first;

    take_out(alarm, entry);
    alarm->ringing = entry;
    (void)pthread_mutex_unlock(&alarm->lock);
    entry->ring(entry); /* may free the entry, if nobody else clears it */
    (void)pthread_mutex_lock(&alarm->lock);
    alarm->ringing = NULL;
    (void)pthread_cond_broadcast(&alarm->changed);
}

static void *run(void *context)
{
    struct alarm *alarm = context;

    (void)pthread_mutex_lock(&alarm->lock);
    while (!alarm->ending) {
        if (alarm->first != NULL && clock_passed(alarm->first->deadline)) {
            ring_first(alarm);
        } else {
            wait_for_first(alarm);
        }
    }
    (void)pthread_mutex_unlock(&alarm->lock);
    return NULL;
}

struct alarm *alarm_new(struct err *err)
{
    struct alarm *alarm = alloc_zero(1, sizeof(*alarm));
    int failed;

    (void)pthread_mutex_init(&alarm->lock, NULL);
    (void)pthread_cond_init(&alarm->changed, NULL);
    failed = pthread_create(&alarm->thread, NULL, run, alarm);
    if (failed != 0) {
        (void)err_set(err, ERR_IO, failed, "cannot start a thread: %s", err_errno_text(failed));
        free(alarm);
        return NULL;
    }
    (void)pthread_setname_np(alarm->thread, "alarm");
    return alarm;
}

void alarm_free(struct alarm *alarm)
{
    if (alarm == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&alarm->lock);
    alarm->ending = true;
    (void)pthread_cond_broadcast(&alarm->changed);
    (void)pthread_mutex_unlock(&alarm->lock);
    (void)pthread_join(alarm->thread, NULL);
    (void)pthread_cond_destroy(&alarm->changed);
    (void)pthread_mutex_destroy(&alarm->lock);
    free(alarm);
}

void alarm_set(struct alarm *alarm, struct alarm_entry *entry, int64_t deadline)
{
    struct alarm_entry **at = &alarm->first;

    (void)pthread_mutex_lock(&alarm->lock);
    if (entry->set) {
        take_out(alarm, entry);
    }
    entry->deadline = deadline;
    while (*at != NULL && (*at)->deadline <= deadline) {
        at = &(*at)->next;
    }
    entry->next = *at;
    *at = entry;
    entry->set = true;
    if (alarm->first == entry) {
        (void)pthread_cond_broadcast(&alarm->changed);
    }
    (void)pthread_mutex_unlock(&alarm->lock);
}

bool alarm_clear(struct alarm *alarm, struct alarm_entry *entry)
{
    bool cleared;

    (void)pthread_mutex_lock(&alarm->lock);
    cleared = entry->set;
    if (cleared) {
        take_out(alarm, entry);
    }
    while (alarm->ringing == entry) {
        (void)pthread_cond_wait(&alarm->changed, &alarm->lock);
    }
    (void)pthread_mutex_unlock(&alarm->lock);
    return cleared;
}
