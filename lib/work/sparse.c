/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse: lseek(2) asks for data and holes in turn.
 * Owns: nothing.
 * Threads: any.
 * May include: base, libarchive.
 */
#include "lib/work/sparse.h"

#include <archive_entry.h>
#include <errno.h>
#include <unistd.h>

#define BLOCK_BYTES 512 /* the unit of st_blocks, stat(3type) */

bool sparse_is_dense(const struct stat *status)
{
    return (off_t)status->st_blocks * BLOCK_BYTES >= status->st_size;
}

bool sparse_map(struct archive_entry *entry, int fd, const struct stat *status)
{
    off_t at = 0;

    for (int runs = 0; at < status->st_size; runs++) {
        off_t data = lseek(fd, at, SEEK_DATA);
        off_t hole = data >= 0 ? lseek(fd, data, SEEK_HOLE) : -1;

        if (data < 0 && errno == ENXIO) { /* a hole up to the end (lseek(2)) */
            break;
        }
        if (hole < 0) { /* the file system can't tell */
            archive_entry_sparse_clear(entry);
            return true;
        }
        if (runs == SPARSE_RUNS_MAX) {
            return false;
        }
        hole = hole < status->st_size ? hole : status->st_size;
        if (data < hole) {
            archive_entry_sparse_add_entry(entry, data, hole - data);
        }
        at = hole;
    }
    /* Without data the map has one empty run, as libarchive's own reader of disks makes it. */
    if (archive_entry_sparse_count(entry) == 0) {
        archive_entry_sparse_add_entry(entry, 0, 0);
    }
    return true;
}
