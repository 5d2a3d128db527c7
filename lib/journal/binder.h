/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binder: files that hold many short logs, so that an execution costs no file of its own: an
 * appended kilobyte is some 3 us, a new file 20 us, and 300 us where ext4 has no journal and lately
 * deleted many files (it passes over their inodes: recently_deleted in fs/ext4/ialloc.c). For
 * lib/journal alone; any thread.
 *
 * Binders lie beside the files of long logs, 64 ids' hashes to each of them, as ".<16 digits>",
 * later ones with larger numbers. A process writes only to those it made, so a piece that was cut
 * short by a crash is the last of its file. A piece is a record (record.h) whose data is the id and
 * then a part of the log, checked as a whole: nobody is given another execution's bytes. A log lies
 * in one binder as a whole.
 */
#ifndef KERND_JOURNAL_BINDER_H
#define KERND_JOURNAL_BINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

#define BINDER_LOG_MAX ((size_t)16 * 1024) /* a longer log has a file of its own */

struct binders;

/* Where a log is; number 0: nowhere yet. */
struct binder_place {
    uint64_t number; /* of the binder */
    uint64_t at;     /* of the log's first piece in it */
};

/* In the journal's directory, which stays the caller's. span_ms: none is written to for longer. */
struct binders *binder_new(int directory, int64_t span_ms);

/* NULL is fine. */
void binder_free(struct binders *binders);

/*
 * Writes the bytes [from, log->size) behind what is there of this log, or all of it if its binder
 * takes no more. Without bytes, and for nowhere: what was there of it before is gone. 0, or -1
 * with errno: nothing changed.
 */
int binder_write(struct binders *binders, const char *id, const struct buf *log, size_t from,
                 struct binder_place *place);

/* Makes what is there unreadable, with no need of room on the disk. */
void binder_void(struct binders *binders, const char *id, const struct binder_place *place);

/* Appends what is there of a log to ret_log, an empty one. False if there is nothing. */
bool binder_find(struct binders *binders, const char *id, struct buf *ret_log);

/* The number in a binder's name; 0 if it is not one. */
uint64_t binder_number(const char *name);

#endif
