/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan: a census of the regular files of a workspace, and what changed between two of them.
 *
 * Cost: one walk, a stat a file, no open (but see scan_compare). A change that keeps size and mtime
 * is seen by ctime and inode number. Renaming is a deletion and a creation. A file that was made
 * and deleted between the two is not seen; who made a change is not known. Any thread; a census
 * does not change once taken.
 */
#ifndef KERND_WORK_SCAN_H
#define KERND_WORK_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct scan;

struct scan_options {
    size_t files_max;        /* files counted at most, in the order of path_compare; 0: 200,000 */
    const char *const *skip; /* whole paths to leave out with all below; NULL-terminated, or NULL */
};

/* options may be NULL. 0, or -1 with the errors of walk_open. */
int scan_take(int root, const struct scan_options *options, struct scan **ret_scan,
              struct err *err);

/* The census of a directory that is known to be empty. */
struct scan *scan_nothing(void);

void scan_free(struct scan *scan);

size_t scan_files(const struct scan *scan);
uint64_t scan_bytes(const struct scan *scan);  /* sum of sizes */
uint64_t scan_disk(const struct scan *scan);   /* bytes of disk behind them */
bool scan_incomplete(const struct scan *scan); /* more files than files_max, or see walk.h */

enum scan_change { SCAN_CREATED, SCAN_MODIFIED, SCAN_DELETED };

struct scan_row {
    char *path;    /* raw bytes */
    uint64_t size; /* now; of a deleted one: before */
    enum scan_change change;
};

struct scan_diff {
    struct scan_row *rows; /* in the order of path_compare */
    size_t count;
    bool truncated; /* there are more rows than rows_max, or a census is incomplete */
};

/*
 * What changed from `before` to `after`. Times of older kernels (before Linux 6.13) tick every 1 to
 * 10 ms: a file changed within the tick of the first census is told by its content if it is small
 * (64 KiB), which is why the workspace's descriptor is needed again. The caller calls
 * scan_diff_done.
 */
void scan_compare(int root, const struct scan *before, const struct scan *after, size_t rows_max,
                  struct scan_diff *ret_diff);
void scan_diff_done(struct scan_diff *diff);

#endif
