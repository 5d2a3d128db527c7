/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack: a workspace (or a directory of it) as a tar archive.
 *
 * Plain ustar where that can say it, pax where it can't (long or non-ASCII names, sparse files), so
 * that every tar reads it, and simple trees are read by the simplest. Members are sorted; owner is
 * 0/0; hard links are stored as files of their own. Memory is flat. What is made can be unpacked
 * (unpack.h), whatever changes meanwhile: a file that is written to while it is read is stored with
 * the size it had, cut or filled with zeros, and told. Any thread; a second one compresses and
 * writes meanwhile (squeeze.h).
 */
#ifndef KERND_WORK_PACK_H
#define KERND_WORK_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/cancel.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"

struct pack_options {
    const char *directory;   /* parsed; members are named relative to it; PATH_ROOT: all */
    const char *const *skip; /* whole paths to leave out without a word; NULL-terminated, or NULL */
    bool gzip;               /* level 1, no time of day: the same tree gives the same bytes */
    bool links;              /* keep symbolic links that stay inside; else they are left out */
    uint64_t max_bytes;      /* of the archive: STORE_FULL above; 0: no bound */
    uint64_t max_entries;    /* members: STORE_FULL above; 0: UNPACK_ENTRIES_MAX */
    struct cancel *cancel;   /* may be NULL: CANCELLED when fired */
};

/*
 * Something that is not in the archive, or not as it was at any one time. Why (static):
 *
 *     fifo, socket, device   no archive that is taken holds them
 *     symlink                it leads outside, or links are not wanted
 *     unreadable             by the server's user
 *     holes                  a file with too many of them
 *     deep                   too many levels, with all below (UNPACK_DEPTH_MAX)
 *     unlisted               of a directory: some names below are too long or too many to be told
 *     changed                it became something else after it was listed; or it is a file that was
 *                            written to while it was read, and is in the archive
 */
struct pack_left {
    char *path; /* raw bytes, from the workspace on */
    const char *why;
};

#define PACK_LEFT_MAX 1000

struct pack_result {
    uint64_t entries; /* members */
    uint64_t bytes;   /* of the archive */
    uint64_t content; /* bytes of all files, holes not counted */
    char digest[HASH_HEX_SIZE];
    struct pack_left *left;
    size_t left_count; /* the first PACK_LEFT_MAX */
    bool left_truncated;
};
void pack_result_done(struct pack_result *result);

/*
 * Writes the archive to an open file, pipe or socket. 0, or -1 FILE_NOT_FOUND, BAD_PATH, FORBIDDEN
 * (the directory), CANCELLED, STORE_FULL, IO; then what was written is no archive.
 */
int pack_write(int root, const struct pack_options *options, int out,
               struct pack_result *ret_result, struct err *err);

#endif
