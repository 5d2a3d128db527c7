/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleepers: threads that wait to be called one by one, the last to sleep first.
 *
 * That one's stack and heap are still in the processor's caches, and under little load those of the
 * others need no memory at all; a condition variable calls its waiters in turn. For
 * lib/base/pool.c, under its lock.
 */
#ifndef KERND_BASE_SLEEPERS_H
#define KERND_BASE_SLEEPERS_H

#include <pthread.h>
#include <stdbool.h>

/* One thread's. Must be there as long as anybody may call it, also after its last sleep. */
struct sleeper {
    pthread_cond_t wake;
    bool called;
    struct sleeper *next;
};

struct sleepers {
    struct sleeper *first;
};

void sleepers_init(struct sleeper *self);
void sleepers_done(struct sleeper *self);

/* Sleeps until it is chosen and called. Under the lock, which is free meanwhile. */
void sleepers_wait(struct sleepers *sleepers, struct sleeper *self, pthread_mutex_t *lock);

/* Takes out who is to be called, NULL: nobody sleeps. Under the lock. */
struct sleeper *sleepers_choose(struct sleepers *sleepers);

/* Wakes it; NULL is fine. Best without the lock, which the woken thread takes at once. */
void sleepers_call(struct sleeper *chosen);

/* Chooses and calls all that sleep. Under the lock. */
void sleepers_call_all(struct sleepers *sleepers);

#endif
