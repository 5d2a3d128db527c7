/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead: what inflate.h gives, decompressed by a second thread ahead of who takes it. Making many
 * small files takes about as long as decompressing them, so this is what `tar xz` gains by being
 * two processes. For lib/work alone; one thread at a time takes.
 *
 * Memory is flat: the second thread waits while four pieces of 256 KiB are still to be taken. What
 * fits into one piece is decompressed by the caller, without a second thread.
 */
#ifndef KERND_WORK_AHEAD_H
#define KERND_WORK_AHEAD_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/base/cancel.h"
#include "lib/base/err.h"

struct ahead;

/* As inflate_open; -1 also IO: there is no thread for it. */
int ahead_open(int in, uint64_t max_bytes, const struct cancel *cancel, struct ahead **ret_ahead,
               struct err *err);

/*
 * The next bytes (some 256 KiB), good until the next call. How many, 0 at the end (all checks
 * passed), -1 as inflate_next, once what could be decompressed was taken.
 */
ssize_t ahead_next(struct ahead *ahead, const void **ret_data, struct err *err);

/* Waits for a read(2) that is under way. NULL is fine. */
void ahead_close(struct ahead *ahead);

#endif
