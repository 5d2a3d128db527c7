/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate: the bytes inside a compressed file (gzip, zstd, xz, bzip2) or of a plain one, with the
 * checks that libarchive leaves out: gzip's checksum and length, nothing behind the end, one layer
 * of compression only, a bound on what comes out. For lib/work alone; one thread at a time.
 */
#ifndef KERND_WORK_INFLATE_H
#define KERND_WORK_INFLATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/cancel.h"
#include "lib/base/err.h"

struct inflate;

/*
 * Reads from the descriptor; that and the token (NULL: none) stay the caller's. -1 BAD_ARCHIVE,
 * CANCELLED, IO.
 */
int inflate_open(int in, uint64_t max_bytes, const struct cancel *cancel,
                 struct inflate **ret_inflate, struct err *err);

/*
 * The next bytes (some 64 KiB), good until the next call. How many, 0 at the end (all checks
 * passed), -1 BAD_ARCHIVE, CANCELLED, IO.
 */
ssize_t inflate_next(struct inflate *inflate, const void **ret_data, struct err *err);

void inflate_close(struct inflate *inflate); /* NULL is fine */

#endif
