/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: let threads sleep, and wake the one that slept least.
 * Owns: the list; sleepers are their threads'.
 * Threads: any, under one lock of the caller's.
 * May include: libc.
 */
#include "lib/base/sleepers.h"

#include <stddef.h>

void sleepers_init(struct sleeper *self)
{
    (void)pthread_cond_init(&self->wake, NULL);
}

void sleepers_done(struct sleeper *self)
{
    (void)pthread_cond_destroy(&self->wake);
}

void sleepers_wait(struct sleepers *sleepers, struct sleeper *self, pthread_mutex_t *lock)
{
    self->called = false;
    self->next = sleepers->first;
    sleepers->first = self;
    while (!self->called) {
        (void)pthread_cond_wait(&self->wake, lock);
    }
}

struct sleeper *sleepers_choose(struct sleepers *sleepers)
{
    struct sleeper *chosen = sleepers->first;

    if (chosen != NULL) {
        sleepers->first = chosen->next;
        chosen->called = true;
    }
    return chosen;
}

void sleepers_call(struct sleeper *chosen)
{
    if (chosen != NULL) {
        (void)pthread_cond_signal(&chosen->wake);
    }
}

void sleepers_call_all(struct sleepers *sleepers)
{
    while (sleepers->first != NULL) {
        sleepers_call(sleepers_choose(sleepers));
    }
}
