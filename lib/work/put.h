/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put: writes one file of a workspace, piece by piece, and shows it whole or not at all.
 *
 *     put_begin   checks the place, opens a nameless file
 *     put_write   any number of pieces; memory stays flat
 *     put_commit  gives it its name in one step; readers see the old bytes or the new ones
 *     put_free    always; without a commit nothing is left
 *
 * A put belongs to one thread at a time. Errors as in files.h.
 */
#ifndef KERND_WORK_PUT_H
#define KERND_WORK_PUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/work/entry.h"

struct put;

/* Zeroed: replace or create, no sync, no bound, mode kept or 0644. */
struct put_options {
    bool durable;         /* on disk before put_commit returns (fsync of file and directory) */
    bool create_only;     /* ETAG_MISMATCH if anything is there (If-None-Match: *) */
    const char *if_match; /* ETAG_MISMATCH unless the file there has this etag; NULL: no matter */
    uint64_t max_bytes;   /* WORKSPACE_FULL above it; 0: no bound */
    bool set_mode;        /* false: the mode of the file that is replaced, else 0644 */
    unsigned mode;        /* permission bits, 0777 */
};

/*
 * 0, or -1 BAD_PATH (also when something other than a regular file is there), ETAG_MISMATCH and the
 * common errors. Makes no directory yet. Borrows root for the life of the put; copies the rest.
 */
int put_begin(int root, const char *path, const struct put_options *options, struct put **ret_put,
              struct err *err);

/* 0, or -1 WORKSPACE_FULL, IO. */
int put_write(struct put *put, const void *data, size_t size, struct err *err);

/*
 * Instead of put_write: the content is that of a nameless file (open(2), O_TMPFILE, not O_EXCL) of
 * size bytes, which may be of another file system. It becomes the file itself where it can, else
 * its bytes are copied by put_commit. Borrows fd for the life of the put. 0, or -1 WORKSPACE_FULL.
 */
int put_adopt(struct put *put, int fd, uint64_t size, struct err *err);

/*
 * 0, whether the name is new, and what is there now; or -1 as put_begin (all is checked again). A
 * change by somebody else between the last check and the renaming is overwritten.
 */
int put_commit(struct put *put, bool *ret_created, struct entry *ret_entry, struct err *err);

void put_free(struct put *put);

/*
 * Is it a name that put_commit uses for a moment (or that a crash left in that moment)? Listings
 * and archives leave it out.
 */
bool put_is_temporary(const char *name);

/* All of it for bytes at hand, with zeroed options. */
int put_whole(int root, const char *path, const void *data, size_t size, struct err *err);

#endif
