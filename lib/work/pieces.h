/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces: a ring of four pieces of memory by which one thread hands bytes to another. One fills,
 * one empties, each what it has without a lock; whoever is faster waits, so that memory is flat.
 * For lib/work alone: compression behind a reader (squeeze.h), decompression ahead of a writer
 * (ahead.h). A ring has one filler and one taker; they may be one thread where none has to wait.
 */
#ifndef KERND_WORK_PIECES_H
#define KERND_WORK_PIECES_H

#include <stdbool.h>
#include <stddef.h>

#define PIECES_COUNT 4
#define PIECES_SIZE ((size_t)256 * 1024)

struct piece {
    size_t size; /* bytes in data; the filler sets it */
    char data[PIECES_SIZE];
};

struct pieces;

struct pieces *pieces_new(void);

/* Once neither side uses it any more. NULL is fine. */
void pieces_free(struct pieces *pieces);

/* ---- the side that fills ---- */

/* The piece to be filled next, the same until it is handed over: waits for one that is free. NULL:
 * the other side wants none. */
struct piece *pieces_to_fill(struct pieces *pieces);

/* Hands that piece over. */
void pieces_filled(struct pieces *pieces);

/* Nothing more will be filled. */
void pieces_end(struct pieces *pieces);

/* ---- the side that empties ---- */

/* Gives back the piece that was taken last, and waits for the next one, in the order in which they
 * were filled; it is the caller's until the next call. NULL: all were taken, and no more come. */
const struct piece *pieces_take(struct pieces *pieces);

/* No more are taken: whoever fills need not wait any longer. */
void pieces_refuse(struct pieces *pieces);

#endif
