/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store: the server's memory across restarts: one SQLite database in the state directory.
 *
 * The rows_*.h headers read and write one table each. All of it is for any thread but the event one
 * (calls take tens of microseconds, milliseconds when the disk is busy). A killed server loses
 * nothing that a call returned for; a power cut may lose the last moments, never consistency.
 *
 * Errors everywhere: STORE_FULL (no space), IO, INTERNAL (a bug), and what each header adds.
 */
#ifndef KERND_STORE_STORE_H
#define KERND_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct store;

#define STORE_ID_SIZE 65 /* identifiers, and their NUL (id_valid) */

/*
 * Takes the lock of the state directory (an existing, private one), opens or makes kernd.db there,
 * migrates it, and checks it after an unclean stop. 0, or -1: CONFLICT (another server has the
 * lock), NOT_READY (made by a newer version, or damaged; the remedy says what to do), STORE_FULL,
 * IO. Open it before touching anything else in the state directory.
 */
int store_open(const char *directory, struct store **ret_store, struct err *err);

/* Writes what is queued, closes, gives the lock back. NULL is fine. */
void store_close(struct store *store);

/* Did the last server on this database end without store_close? */
bool store_was_unclean(const struct store *store);

/* Waits until all *_soon writes queued before the call were tried. 0, or -1 if one failed. */
int store_flush(struct store *store, struct err *err);

/*
 * Is it sound and writable? 0, or -1 with why the last queued write failed, or NOT_READY when the
 * background check after an unclean stop found damage.
 */
int store_check(struct store *store, struct err *err);

struct store_stats {
    size_t queued;    /* *_soon writes not written yet */
    uint64_t dropped; /* writes given up because the disk stayed full */
};
void store_stats(struct store *store, struct store_stats *ret_stats);

#endif
