/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces: a ring between two threads.
 * Owns: the pieces.
 * Threads: two, one of each side; one lock, held for neither's work.
 * May include: base.
 */
#include "lib/work/pieces.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/alloc.h"

struct pieces {
    struct piece *ring;
    bool taken; /* the taker has the piece at `emptied`; its own */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* at most one side waits at a time */
    uint64_t filled;        /* ever; those from `emptied` on are to be taken */
    uint64_t emptied;       /* ever */
    bool over;              /* nothing is filled any more */
    bool unwanted;          /* nothing is taken any more */
};

struct pieces *pieces_new(void)
{
    struct pieces *pieces = alloc_zero(1, sizeof(*pieces));

    pieces->ring = alloc_zero(PIECES_COUNT, sizeof(*pieces->ring));
    (void)pthread_mutex_init(&pieces->lock, NULL);
    (void)pthread_cond_init(&pieces->changed, NULL);
    return pieces;
}

void pieces_free(struct pieces *pieces)
{
    if (pieces == NULL) {
        return;
    }
    (void)pthread_cond_destroy(&pieces->changed);
    (void)pthread_mutex_destroy(&pieces->lock);
    free(pieces->ring);
    free(pieces);
}

struct piece *pieces_to_fill(struct pieces *pieces)
{
    struct piece *piece;

    (void)pthread_mutex_lock(&pieces->lock);
    while (pieces->filled - pieces->emptied == PIECES_COUNT && !pieces->unwanted) {
        (void)pthread_cond_wait(&pieces->changed, &pieces->lock);
    }
    piece = pieces->unwanted ? NULL : &pieces->ring[pieces->filled % PIECES_COUNT];
    (void)pthread_mutex_unlock(&pieces->lock);
    return piece;
}

void pieces_filled(struct pieces *pieces)
{
    (void)pthread_mutex_lock(&pieces->lock);
    pieces->filled++;
    (void)pthread_cond_signal(&pieces->changed);
    (void)pthread_mutex_unlock(&pieces->lock);
}

static void set(struct pieces *pieces, bool *mark)
{
    (void)pthread_mutex_lock(&pieces->lock);
    *mark = true;
    (void)pthread_cond_signal(&pieces->changed);
    (void)pthread_mutex_unlock(&pieces->lock);
}

void pieces_end(struct pieces *pieces)
{
    set(pieces, &pieces->over);
}

const struct piece *pieces_take(struct pieces *pieces)
{
    const struct piece *piece = NULL;

    (void)pthread_mutex_lock(&pieces->lock);
    if (pieces->taken) {
        pieces->emptied++;
        (void)pthread_cond_signal(&pieces->changed);
    }
    while (pieces->emptied == pieces->filled && !pieces->over) {
        (void)pthread_cond_wait(&pieces->changed, &pieces->lock);
    }
    if (pieces->emptied < pieces->filled) {
        piece = &pieces->ring[pieces->emptied % PIECES_COUNT];
    }
    pieces->taken = piece != NULL;
    (void)pthread_mutex_unlock(&pieces->lock);
    return piece;
}

void pieces_refuse(struct pieces *pieces)
{
    set(pieces, &pieces->unwanted);
}
