/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead: inflate on the filling side of a ring (pieces.h).
 * Owns: its thread, the ring, the reader of the compressed file.
 * Threads: that of the caller takes pieces, its own fills them.
 * May include: base.
 */
#include "lib/work/ahead.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/work/inflate.h"
#include "lib/work/pieces.h"

struct ahead {
    const struct cancel *cancel;
    pthread_t thread;
    bool threaded; /* it has been started */
    struct pieces *pieces;
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
    while (piece->size < PIECES_SIZE) {
        size_t room = PIECES_SIZE - piece->size;
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

/* One piece, the last one too if it is not full. False: no more are to be filled. */
static bool fill_next(struct ahead *ahead)
{
    struct piece *piece = pieces_to_fill(ahead->pieces);
    bool more;

    if (piece == NULL) {
        return false;
    }
    more = fill(ahead, piece);
    pieces_filled(ahead->pieces);
    if (!more) {
        pieces_end(ahead->pieces);
    }
    return more;
}

/* The own thread. */
static void *run(void *context)
{
    while (fill_next(context)) {
    }
    return NULL;
}

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

    if (inflate_open(in, max_bytes, cancel, &inflate, err) < 0) {
        return -1;
    }
    ahead = alloc_zero(1, sizeof(*ahead));
    ahead->cancel = cancel;
    ahead->inflate = inflate;
    ahead->pieces = pieces_new();
    if (fill_next(ahead) && start(ahead, err) < 0) {
        ahead_close(ahead);
        return -1;
    }
    *ret_ahead = ahead;
    return 0;
}

ssize_t ahead_next(struct ahead *ahead, const void **ret_data, struct err *err)
{
    const struct piece *piece = pieces_take(ahead->pieces);

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
    pieces_refuse(ahead->pieces);
    if (ahead->threaded) {
        (void)pthread_join(ahead->thread, NULL);
    }
    inflate_close(ahead->inflate);
    pieces_free(ahead->pieces);
    free(ahead);
}
