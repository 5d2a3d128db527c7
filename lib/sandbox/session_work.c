/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_work: long work on sessions, and its end.
 * Owns: nothing.
 * Threads: any but the event one; the table's lock.
 * May include: lib/base, lib/sandbox.
 */
#include "lib/sandbox/session_work.h"

#include "lib/sandbox/session_table.h"

void session_work_begin(struct session_work *work, struct session_entry *entry,
                        struct cancel *cancel)
{
    *work = (struct session_work){ .entry = entry, .cancel = cancel };
    (void)pthread_mutex_lock(&entry->table->lock);
    work->next = entry->work;
    entry->work = work;
    if (entry->closed) {
        cancel_fire(cancel, CANCEL_SESSION_GONE);
    }
    (void)pthread_mutex_unlock(&entry->table->lock);
}

int session_work_end(struct session_work *work, int result, struct err *err)
{
    struct session_entry *entry = work->entry;
    struct session_work **at = &entry->work;
    bool gone;

    (void)pthread_mutex_lock(&entry->table->lock);
    while (*at != work) {
        at = &(*at)->next;
    }
    *at = work->next;
    gone = entry->closed;
    (void)pthread_mutex_unlock(&entry->table->lock);
    if (result < 0 && gone && cancel_get(work->cancel) == CANCEL_SESSION_GONE) {
        (void)err_set(err, ERR_SESSION_NOT_FOUND, 0, "the session %s was deleted meanwhile",
                      entry->id);
    }
    return result;
}

void session_work_stop(struct session_entry *entry)
{
    for (struct session_work *work = entry->work; work != NULL; work = work->next) {
        cancel_fire(work->cancel, CANCEL_SESSION_GONE);
    }
}
