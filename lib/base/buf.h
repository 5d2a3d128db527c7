/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf: a growable byte buffer that is created with its maximum.
 *
 * Invariants: size <= max; data is NULL or holds size bytes followed by a NUL byte that is not
 * counted (so that text can be used as a C string). Bytes may be anything. Not thread-safe.
 */
#ifndef KERND_BASE_BUF_H
#define KERND_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data;
    size_t size;
    size_t capacity;
    size_t max;
};

#define BUF_INIT(maximum) ((struct buf){ .max = (maximum) })
#define CLEANUP_BUF __attribute__((cleanup(buf_done)))

/* Frees the bytes; the buffer is empty and usable again. Accepts an empty one. */
void buf_done(struct buf *buf);

/*
 * Appends all size bytes, or nothing: -1 when that would pass the maximum. Memory exhaustion below
 * the maximum aborts the process (see alloc.h).
 */
int buf_append(struct buf *buf, const void *data, size_t size);

/* As buf_append for a C string. */
int buf_append_text(struct buf *buf, const char *text);

/* printf into the buffer; all or nothing as buf_append. */
int buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends what still fits; returns how many bytes were taken (for capped captures). */
size_t buf_append_some(struct buf *buf, const void *data, size_t size);

/*
 * Room for `want` more bytes at the end, NULL when that would pass the maximum; after writing there
 * call buf_commit with what was really written (<= want).
 */
char *buf_reserve(struct buf *buf, size_t want);
void buf_commit(struct buf *buf, size_t written);

/* Drops the first n bytes (n <= size). */
void buf_consume(struct buf *buf, size_t n);

/*
 * The bytes as a NUL-terminated heap string that the caller frees, never NULL; the buffer is empty
 * after. ret_size may be NULL.
 */
char *buf_take(struct buf *buf, size_t *ret_size);

/* Cuts it back to its first `size` bytes (size <= the present one), keeps the memory. */
void buf_truncate(struct buf *buf, size_t size);

/* Empties it, keeps the memory. */
void buf_reset(struct buf *buf);

#endif
