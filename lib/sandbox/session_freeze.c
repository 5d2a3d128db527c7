/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_freeze: exclusive use of a session.
 * Owns: nothing.
 * Threads: any but the event one; the table's lock.
 * May include: lib/base, lib/sandbox.
 */
#include "lib/sandbox/session_freeze.h"

#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/sandbox/session_table.h"

/* Locked. 1: it is to oneself now; 0: not yet; -1: it will not be. */
static int try_freeze(struct session_entry *entry, bool alone, struct err *err)
{
    if (entry->closed) {
        return err_set(err, ERR_SESSION_BUSY, 0, "the session is being deleted");
    }
    if (entry->running > 0) {
        (void)err_set(err, ERR_SESSION_BUSY, 0, "the session has running executions");
        return err_remedy(err, "wait for the session's executions, or cancel them, and try again");
    }
    if (entry->frozen || (alone && entry->holds > 1)) {
        return 0;
    }
    entry->frozen = true;
    return 1;
}

int session_freeze_begin(struct session_entry *entry, bool alone, int64_t deadline, struct err *err)
{
    struct session_table *table = entry->table;
    struct timespec until = { .tv_sec = deadline / CLOCK_NS_PER_S,
                              .tv_nsec = deadline % CLOCK_NS_PER_S };
    int result;

    (void)pthread_mutex_lock(&table->lock);
    while ((result = try_freeze(entry, alone, err)) == 0 && !clock_passed(deadline)) {
        (void)pthread_cond_clockwait(&table->released, &table->lock, CLOCK_MONOTONIC, &until);
    }
    (void)pthread_mutex_unlock(&table->lock);
    if (result == 0) {
        (void)err_set(err, ERR_SESSION_BUSY, 0, "the session's files are in use");
        return err_remedy(err, "try again when no other call works on the session");
    }
    return result < 0 ? -1 : 0;
}

void session_freeze_end(struct session_entry *entry, int root)
{
    struct session_table *table = entry->table;
    int old = -1;

    (void)pthread_mutex_lock(&table->lock);
    if (root >= 0) {
        old = entry->root;
        entry->root = root;
    }
    entry->frozen = false;
    (void)pthread_cond_broadcast(&table->released);
    (void)pthread_mutex_unlock(&table->lock);
    fd_close(old);
}
