/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live: the list of executions under way.
 * Owns: one reference of each.
 * Threads: any; one lock.
 * May include: lib/base, lib/sandbox.
 */
#include "lib/sandbox/live.h"

#include <stdlib.h>
#include <time.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/sandbox/execution_internal.h"

void live_init(struct live *live)
{
    (void)pthread_mutex_init(&live->lock, NULL);
    (void)pthread_cond_init(&live->empty, NULL);
    live->first = NULL;
}

void live_done(struct live *live)
{
    (void)pthread_cond_destroy(&live->empty);
    (void)pthread_mutex_destroy(&live->lock);
}

void live_add(struct live *live, struct execution *execution)
{
    (void)execution_ref(execution);
    (void)pthread_mutex_lock(&live->lock);
    execution->next = live->first;
    if (live->first != NULL) {
        live->first->previous = execution;
    }
    live->first = execution;
    (void)pthread_mutex_unlock(&live->lock);
}

void live_remove(struct live *live, struct execution *execution)
{
    (void)pthread_mutex_lock(&live->lock);
    if (execution->previous != NULL) {
        execution->previous->next = execution->next;
    } else {
        live->first = execution->next;
    }
    if (execution->next != NULL) {
        execution->next->previous = execution->previous;
    }
    if (live->first == NULL) {
        (void)pthread_cond_broadcast(&live->empty);
    }
    (void)pthread_mutex_unlock(&live->lock);
    execution_unref(execution);
}

struct execution *live_find(struct live *live, const char *id)
{
    struct execution *execution;

    (void)pthread_mutex_lock(&live->lock);
    execution = live->first;
    while (execution != NULL && !text_equal(execution->id, id)) {
        execution = execution->next;
    }
    if (execution != NULL) {
        (void)execution_ref(execution);
    }
    (void)pthread_mutex_unlock(&live->lock);
    return execution;
}

struct execution **live_collect(struct live *live, const char *session_id, size_t *ret_count)
{
    struct execution **found = NULL;
    size_t count = 0;

    (void)pthread_mutex_lock(&live->lock);
    for (struct execution *e = live->first; e != NULL; e = e->next) {
        if (session_id == NULL || text_equal(execution_session_id(e), session_id)) {
            found = alloc_resize(found, count + 1, sizeof(struct execution *));
            found[count++] = execution_ref(e);
        }
    }
    (void)pthread_mutex_unlock(&live->lock);
    *ret_count = count;
    return found;
}

/* Cancelling may take them out of the list, so they were collected before. */
static void cancel_found(struct execution **found, size_t count, enum cancel_reason reason)
{
    for (size_t i = 0; i < count; i++) {
        execution_cancel(found[i], reason);
        execution_unref(found[i]);
    }
    free(found);
}

void live_cancel_all(struct live *live, enum cancel_reason reason)
{
    size_t count;
    struct execution **found = live_collect(live, NULL, &count);

    cancel_found(found, count, reason);
}

void live_cancel_session(struct live *live, const char *session_id)
{
    size_t count;
    struct execution **found = live_collect(live, session_id, &count);

    cancel_found(found, count, CANCEL_SESSION_GONE);
}

bool live_wait_empty(struct live *live, int64_t deadline)
{
    struct timespec until = { .tv_sec = deadline / CLOCK_NS_PER_S,
                              .tv_nsec = deadline % CLOCK_NS_PER_S };
    bool empty;

    (void)pthread_mutex_lock(&live->lock);
    while (live->first != NULL && !clock_passed(deadline)) {
        (void)pthread_cond_clockwait(&live->empty, &live->lock, CLOCK_MONOTONIC, &until);
    }
    empty = live->first == NULL;
    (void)pthread_mutex_unlock(&live->lock);
    return empty;
}
