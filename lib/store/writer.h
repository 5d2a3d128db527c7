/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer: a thread that gathers small writes for some milliseconds and commits them together.
 *
 * So a record costs its caller a copy and a queue lock, and the disk one commit for many records.
 * Writes are done in the order they were queued; of several that write the same row whole and are
 * committed together only the last is done. While the disk is full they are tried again; above
 * 8192 waiting ones the oldest are dropped and counted. For lib/store alone; any thread.
 */
#ifndef KERND_STORE_WRITER_H
#define KERND_STORE_WRITER_H

#include <stdbool.h>

#include "lib/store/store.h"

struct writer;

/* Embedded by the caller in a copy of what is to be written; the writer's from submit to drop. */
struct writer_job {
    /* Within store_enter and a transaction. 0 or -1. May be called again after a failure. */
    int (*write)(struct store *store, struct writer_job *job, struct err *err);
    void (*drop)(struct writer_job *job); /* frees it */
    /* The key of the row that it writes whole, whatever was there, as do all of the same `write`;
     * NULL: it does not. The job's own. */
    const char *row;
    struct writer_job *next; /* the writer's own, like what follows */
    bool outdone;            /* by a later one in the queue */
};

/* NULL with err if the thread can't be made. */
struct writer *writer_new(struct store *store, struct err *err);

/* Tries what is queued once more, ends the thread, drops the rest. NULL is fine. */
void writer_free(struct writer *writer);

void writer_submit(struct writer *writer, struct writer_job *job);

/* As store_flush, store_check, store_stats. */
int writer_flush(struct writer *writer, struct err *err);
int writer_check(struct writer *writer, struct err *err);
void writer_stats(struct writer *writer, struct store_stats *ret_stats);

#endif
