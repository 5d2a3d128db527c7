/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool: the bytes of an upload into an unnamed file, written on the lane while the next ones come.
 *
 * Two pieces of 1 MiB: the event thread fills one while a job of the lane writes the other. When
 * both are full the connection is suspended until one is written, so memory is flat and the client
 * is as slow as the disk. Each piece is a job of its own: uploads share the lane piece by piece.
 */
#ifndef KERND_SERVER_SPOOL_H
#define KERND_SERVER_SPOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/pool.h"

struct exchange;

struct spool {
    struct buf filling; /* the event thread's; the lane's while the connection is suspended */
    struct buf writing; /* the job's while busy */
    struct pool_job job;
    /* Under the exchange's lock: */
    bool busy;             /* the job waits or runs; it holds a reference */
    bool full;             /* both pieces are: the connection is suspended */
    bool unwanted;         /* the job is to close the file */
    bool failed;           /* nothing more is written */
    struct err err;        /* why */
    struct pool_job *next; /* runs once the job is done, NULL: none */
};

/* Event thread, before the first byte. */
void spool_begin(struct exchange *exchange);

/*
 * Takes all of the bytes; may suspend the connection. 0, or -1 with err: STORE_FULL or IO of an
 * earlier piece, QUEUE_FULL or SHUTTING_DOWN. Event thread.
 */
int spool_take(struct exchange *exchange, const char *data, size_t size, struct err *err);

/* Nobody will read the file: its space is free now, or once the piece under way is written. */
void spool_forget(struct exchange *exchange);

/*
 * All has come: has `next` run behind the piece under way, on its thread. False: none is, the job
 * is the caller's still. Event thread, the connection suspended.
 */
bool spool_run_behind(struct exchange *exchange, struct pool_job *next);

/*
 * Writes the rest and puts call.body_file at its start. 0, or -1 with err as spool_take. By whoever
 * has the exchange once no piece is under way.
 */
int spool_finish(struct exchange *exchange, struct err *err);

/* With the last reference. */
void spool_done(struct exchange *exchange);

#endif
