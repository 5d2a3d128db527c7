/* SPDX-License-Identifier: Apache-2.0 */
/*
 * squeeze: libarchive's gzip on the emptying side of a ring (pieces.h).
 * Owns: its thread, the ring.
 * Threads: that of the caller fills pieces, its own takes them; one lock for what failed.
 * May include: base, libarchive.
 */
#include "lib/work/squeeze.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/fd.h"
#include "lib/work/pieces.h"

#define OUT_PIECE (64 * 1024)

struct squeeze {
    struct squeeze_options options;
    pthread_t thread;
    struct pieces *pieces;

    pthread_mutex_t lock; /* the next four */
    bool aborted;
    bool too_big;
    int out_errno;
    bool broken; /* libarchive failed */

    size_t at; /* bytes in the piece that is being filled; the caller's */
    /* The own thread's, until it has ended: */
    struct archive *gzip;
    struct hash *hash;
    uint64_t bytes;
};

/* ---- the own thread ---- */

static bool failed(struct squeeze *squeeze)
{
    bool result;

    (void)pthread_mutex_lock(&squeeze->lock);
    result = squeeze->aborted || squeeze->too_big || squeeze->broken || squeeze->out_errno != 0;
    (void)pthread_mutex_unlock(&squeeze->lock);
    return result;
}

static void put_out(struct squeeze *squeeze, const void *data, size_t size)
{
    uint64_t max = squeeze->options.max_bytes;
    bool too_big;
    int sys = 0;

    if (failed(squeeze)) {
        return;
    }
    squeeze->bytes += size;
    too_big = max > 0 && squeeze->bytes > max;
    if (!too_big) {
        hash_add(squeeze->hash, data, size);
        sys = fd_write_full(squeeze->options.out, data, size) < 0 ? errno : 0;
    }
    if (too_big || sys != 0) {
        (void)pthread_mutex_lock(&squeeze->lock);
        squeeze->too_big = too_big;
        squeeze->out_errno = sys;
        (void)pthread_mutex_unlock(&squeeze->lock);
    }
}

/*
 * libarchive's output. A failure is remembered and the rest swallowed: told to libarchive, it would
 * not free its buffers (3.6.2).
 */
static la_ssize_t output(struct archive *archive, void *context, const void *data, size_t size)
{
    (void)archive;
    put_out(context, data, size);
    return (la_ssize_t)size;
}

/* A "raw" archive is its one member's bytes and nothing else: what is left is the gzip filter. */
static bool open_gzip(struct squeeze *squeeze)
{
    struct archive *gzip = squeeze->gzip;
    struct archive_entry *entry = archive_entry_new();
    bool worked = archive_write_set_format_raw(gzip) >= ARCHIVE_WARN &&
                  archive_write_add_filter_gzip(gzip) >= ARCHIVE_WARN &&
                  archive_write_set_options(gzip, "gzip:compression-level=1,gzip:!timestamp") >=
                      ARCHIVE_WARN &&
                  archive_write_set_bytes_per_block(gzip, OUT_PIECE) >= ARCHIVE_WARN &&
                  archive_write_set_bytes_in_last_block(gzip, 1) >= ARCHIVE_WARN &&
                  archive_write_open2(gzip, squeeze, NULL, output, NULL, NULL) >= ARCHIVE_WARN;

    archive_entry_set_filetype(entry, AE_IFREG);
    worked = worked && archive_write_header(gzip, entry) >= ARCHIVE_WARN;
    archive_entry_free(entry);
    return worked;
}

static void note_broken(struct squeeze *squeeze)
{
    (void)pthread_mutex_lock(&squeeze->lock);
    squeeze->broken = true;
    (void)pthread_mutex_unlock(&squeeze->lock);
}

static void take(struct squeeze *squeeze, const struct piece *piece)
{
    if (squeeze->gzip == NULL) {
        put_out(squeeze, piece->data, piece->size);
    } else if (!failed(squeeze) &&
               archive_write_data(squeeze->gzip, piece->data, piece->size) < 0) {
        note_broken(squeeze);
    }
}

static void *run(void *context)
{
    struct squeeze *squeeze = context;
    const struct piece *piece;

    if (squeeze->gzip != NULL && !open_gzip(squeeze)) {
        note_broken(squeeze);
    }
    while ((piece = pieces_take(squeeze->pieces)) != NULL) {
        take(squeeze, piece);
    }
    if (squeeze->gzip != NULL && archive_write_close(squeeze->gzip) < ARCHIVE_WARN) {
        note_broken(squeeze);
    }
    return NULL;
}

/* ---- the caller's ---- */

static void done(struct squeeze *squeeze, char digest[static HASH_HEX_SIZE])
{
    hash_end_hex(squeeze->hash, digest);
    (void)archive_write_free(squeeze->gzip);
    (void)pthread_mutex_destroy(&squeeze->lock);
    pieces_free(squeeze->pieces);
    free(squeeze);
}

int squeeze_open(const struct squeeze_options *options, struct squeeze **ret_squeeze,
                 struct err *err)
{
    struct squeeze *squeeze = alloc_zero(1, sizeof(*squeeze));
    char digest[HASH_HEX_SIZE];
    int sys;

    squeeze->options = *options;
    squeeze->pieces = pieces_new();
    squeeze->gzip = options->gzip ? archive_write_new() : NULL;
    squeeze->hash = hash_new();
    (void)pthread_mutex_init(&squeeze->lock, NULL);
    sys = pthread_create(&squeeze->thread, NULL, run, squeeze);
    if (sys != 0) {
        done(squeeze, digest);
        return err_set(err, ERR_IO, sys, "a thread that compresses can't be made: %s",
                       err_errno_text(sys));
    }
    (void)pthread_setname_np(squeeze->thread, "squeeze");
    *ret_squeeze = squeeze;
    return 0;
}

static void hand_over(struct squeeze *squeeze, struct piece *piece)
{
    piece->size = squeeze->at;
    squeeze->at = 0;
    pieces_filled(squeeze->pieces);
}

void squeeze_add(struct squeeze *squeeze, const void *data, size_t size)
{
    const char *from = data;

    while (size > 0 && !squeeze->aborted) {
        struct piece *piece = pieces_to_fill(squeeze->pieces);
        size_t room = PIECES_SIZE - squeeze->at;
        size_t part = size < room ? size : room;

        memcpy(piece->data + squeeze->at, from, part);
        squeeze->at += part;
        from += part;
        size -= part;
        if (squeeze->at == PIECES_SIZE) {
            hand_over(squeeze, piece);
        }
    }
}

int squeeze_check(struct squeeze *squeeze, struct err *err)
{
    bool broken;
    bool too_big;
    int sys;

    (void)pthread_mutex_lock(&squeeze->lock);
    broken = squeeze->broken || squeeze->aborted;
    too_big = squeeze->too_big;
    sys = squeeze->out_errno;
    (void)pthread_mutex_unlock(&squeeze->lock);
    if (too_big) {
        return err_set(err, ERR_STORE_FULL, 0, "the archive is larger than %llu bytes",
                       (unsigned long long)squeeze->options.max_bytes);
    }
    if (sys == ENOSPC || sys == EDQUOT) {
        return err_set(err, ERR_STORE_FULL, sys, "no space is left for the archive");
    }
    if (sys != 0) {
        return err_set(err, ERR_IO, sys, "the archive can't be written: %s", err_errno_text(sys));
    }
    return broken ? err_set(err, ERR_IO, 0, "the archive can't be compressed") : 0;
}

void squeeze_abort(struct squeeze *squeeze)
{
    (void)pthread_mutex_lock(&squeeze->lock);
    squeeze->aborted = true;
    (void)pthread_mutex_unlock(&squeeze->lock);
}

int squeeze_close(struct squeeze *squeeze, struct squeeze_result *ret_result, struct err *err)
{
    struct squeeze_result result;
    int worked;

    if (squeeze->at > 0) {
        hand_over(squeeze, pieces_to_fill(squeeze->pieces));
    }
    pieces_end(squeeze->pieces);
    (void)pthread_join(squeeze->thread, NULL);
    result.bytes = squeeze->bytes;
    worked = squeeze_check(squeeze, err);
    done(squeeze, result.digest);
    if (worked == 0) {
        *ret_result = result;
    }
    return worked;
}
