/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead: a ring of pieces between two threads, filled with what inflate gives.
 * Owns: its thread, the ring, the reader of the compressed file.
 * Threads: that of the caller empties pieces, its own fills them; one lock, held for neither.
 * May include: base.
 */
#include "lib/work/ahead.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/work/inflate.h"

#define PIECES 4
#define PIECE ((size_t)256 * 1024)

struct piece {
    size_t size;
    char data[PIECE];
};

struct ahead {
    const struct cancel *cancel;
    pthread_t thread;
    bool threaded; /* it has been started */
    struct piece *pieces;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t filled;  /* pieces, ever; those from `emptied` on wait */
    size_t emptied; /* pieces, ever */
    bool over;      /* nothing is filled any more */
    bool unwanted;  /* nothing is taken any more */
    bool holds;     /* the caller has the piece at `emptied`; its thread's */

    /* Of whoever fills, until it is over: */
    struct inflate *inflate;
    const char *block; /* of inflate, what did not fit into the last piece */
    size_t block_size;
    struct err failure;
};

/* False: there is nothing more, or it failed. */
static bool fill(struct ahead *ahead, struct piece *piece)
{
    piece->size = 0;
    while (piece->size < PIECE) {
        size_t room = PIECE - piece->size;
        const void *block = ahead->block;
        size_t part;

        if (ahead->block_size == 0) {
            ssize_t got = inflate_next(ahead->inflate, &block, &ahead->failure);

            if (got <= 0) {
                return false;
            }
            ahead->block_size = (size_t)got;
        }
        part = ahead->block_size < room ? ahead->block_size : room;
        memcpy(piece->data + piece->size, block, part);
        piece->size += part;
        ahead->block = (const char *)block + part;
        ahead->block_size -= part;
    }
    return true;
}

static void hand_over(struct ahead *ahead, bool more)
{
    (void)pthread_mutex_lock(&ahead->lock);
    ahead->filled++;
    ahead->over = !more;
    (void)pthread_cond_signal(&ahead->changed);
    (void)pthread_mutex_unlock(&ahead->lock);
}

/* ---- the own thread ---- */

/* The piece to fill, once it is free, or NULL when nobody wants it. */
static struct piece *wait_emptied(struct ahead *ahead)
{
    struct piece *piece;

    (void)pthread_mutex_lock(&ahead->lock);
    while (ahead->filled - ahead->emptied == PIECES && !ahead->unwanted) {
        (void)pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    piece = ahead->unwanted ? NULL : &ahead->pieces[ahead->filled % PIECES];
    (void)pthread_mutex_unlock(&ahead->lock);
    return piece;
}

static void *run(void *context)
{
    struct ahead *ahead = context;
    struct piece *piece;
    bool more = true;

    while (more && (piece = wait_emptied(ahead)) != NULL) {
        more = fill(ahead, piece);
        hand_over(ahead, more);
    }
    return NULL;
}

/* ---- the caller's ---- */

static int start(struct ahead *ahead, struct err *err)
{
    int sys = pthread_create(&ahead->thread, NULL, run, ahead);

    if (sys != 0) {
        return err_set(err, ERR_IO, sys, "a thread that decompresses can't be made: %s",
                       err_errno_text(sys));
    }
    (void)pthread_setname_np(ahead->thread, "ahead");
    ahead->threaded = true;
    return 0;
}

int ahead_open(int in, uint64_t max_bytes, const struct cancel *cancel, struct ahead **ret_ahead,
               struct err *err)
{
    struct inflate *inflate;
    struct ahead *ahead;
    bool more;

    if (inflate_open(in, max_bytes, cancel, &inflate, err) < 0) {
        return -1;
    }
    ahead = alloc_zero(1, sizeof(*ahead));
    ahead->cancel = cancel;
    ahead->inflate = inflate;
    ahead->pieces = alloc_zero(PIECES, sizeof(*ahead->pieces));
    (void)pthread_mutex_init(&ahead->lock, NULL);
    (void)pthread_cond_init(&ahead->changed, NULL);
    more = fill(ahead, &ahead->pieces[0]);
    hand_over(ahead, more);
    if (more && start(ahead, err) < 0) {
        ahead_close(ahead);
        return -1;
    }
    *ret_ahead = ahead;
    return 0;
}

/* Gives back what the caller has. The next piece, or NULL at the end. */
static struct piece *wait_filled(struct ahead *ahead)
{
    struct piece *piece = NULL;

    (void)pthread_mutex_lock(&ahead->lock);
    if (ahead->holds) {
        ahead->emptied++;
        (void)pthread_cond_signal(&ahead->changed);
    }
    while (ahead->emptied == ahead->filled && !ahead->over) {
        (void)pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    if (ahead->emptied < ahead->filled) {
        piece = &ahead->pieces[ahead->emptied % PIECES];
    }
    ahead->holds = piece != NULL;
    (void)pthread_mutex_unlock(&ahead->lock);
    return piece;
}

ssize_t ahead_next(struct ahead *ahead, const void **ret_data, struct err *err)
{
    const struct piece *piece = wait_filled(ahead);

    if (cancel_get(ahead->cancel) != CANCEL_NONE) {
        return err_set(err, ERR_CANCELLED, 0, "the archive was not read to its end");
    }
    if (piece != NULL && piece->size > 0) {
        *ret_data = piece->data;
        return (ssize_t)piece->size;
    }
    return ahead->failure.code == ERR_NONE
               ? 0
               : err_set(err, ahead->failure.code, ahead->failure.sys, "%s", ahead->failure.msg);
}

void ahead_close(struct ahead *ahead)
{
    if (ahead == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&ahead->lock);
    ahead->unwanted = true;
    (void)pthread_cond_signal(&ahead->changed);
    (void)pthread_mutex_unlock(&ahead->lock);
    if (ahead->threaded) {
        (void)pthread_join(ahead->thread, NULL);
    }
    inflate_close(ahead->inflate);
    (void)pthread_cond_destroy(&ahead->changed);
    (void)pthread_mutex_destroy(&ahead->lock);
    free(ahead->pieces);
    free(ahead);
}
