/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream: the data of all events of one kind of a tape as one run of bytes: raw standard output.
 * Belongs to one thread at a time. tape_bytes_of tells how much there is.
 */
#ifndef KERND_JOURNAL_STREAM_H
#define KERND_JOURNAL_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "lib/journal/tape.h"

struct stream;

/* Holds a reference to the tape. The caller calls stream_free. */
struct stream *stream_new(struct tape *tape, uint32_t kind);

/*
 * Copies up to size bytes from this offset on. How many; 0: there are none (yet). Reading on where
 * the last read ended is cheap; going back starts from the beginning of the log.
 */
size_t stream_read(struct stream *stream, uint64_t offset, void *out, size_t size);

void stream_free(struct stream *stream); /* NULL is fine */

#endif
