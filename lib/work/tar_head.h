/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_head: what libarchive's tar reader guesses in a member's header (3.6.2: digits up to the
 * first other byte, so "12x" is 10) or passes over (the size of a directory) is looked at here. For
 * lib/work alone; one thread at a time.
 *
 * The reader doesn't show headers, but they stand in front of what it takes next. So the stream is
 * seen here as the reader gets it.
 */
#ifndef KERND_WORK_TAR_HEAD_H
#define KERND_WORK_TAR_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_HEAD_BYTES 512 /* POSIX.1-1988, and all its heirs */

struct tar_head {
    const unsigned char *block; /* the last bytes that the reader got, borrowed */
    size_t size;
    uint64_t given;                       /* to the reader in all */
    unsigned char before[TAR_HEAD_BYTES]; /* the end of what it got before */
};

/* The block is not good any more: before the next one is made. */
void tar_head_leave(struct tar_head *head);

/* The next block that the reader gets. */
void tar_head_see(struct tar_head *head, const void *block, size_t size);

/*
 * The reader has told of a member and has taken so many bytes of the stream. What is wrong with the
 * size in its header (static), or NULL: it is octal digits, or base 256 (GNU), and 0 of a
 * directory. What is no header (the map of a sparse file may stand behind it) is sound.
 */
const char *tar_head_fault(const struct tar_head *head, uint64_t taken);

#endif
