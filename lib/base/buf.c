/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: grow a byte buffer up to its maximum.
 * Owns: the bytes in each buffer.
 * Threads: any, one at a time for one buffer.
 * May include: libc.
 */
#include "lib/base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

#define SMALLEST_CAPACITY 64

void buf_done(struct buf *buf)
{
    free(buf->data);
    buf->data = NULL;
    buf->size = 0;
    buf->capacity = 0;
}

/* Makes room for `want` more bytes and the NUL; doubling keeps appends linear. */
static int grow(struct buf *buf, size_t want)
{
    size_t need = 0;
    size_t capacity = buf->capacity < SMALLEST_CAPACITY ? SMALLEST_CAPACITY : buf->capacity;

    if (want > buf->max - buf->size || __builtin_add_overflow(buf->size + want, 1, &need)) {
        return -1;
    }
    if (need <= buf->capacity) {
        return 0;
    }
    while (capacity < need) {
        capacity = capacity > SIZE_MAX / 2 ? need : capacity * 2;
    }
    if (capacity - 1 > buf->max) {
        capacity = buf->max + 1;
    }
    buf->data = alloc_resize(buf->data, capacity, 1);
    buf->capacity = capacity;
    return 0;
}

char *buf_reserve(struct buf *buf, size_t want)
{
    if (grow(buf, want) < 0) {
        return NULL;
    }
    buf->data[buf->size] = '\0';
    return buf->data + buf->size;
}

void buf_commit(struct buf *buf, size_t written)
{
    if (buf->data != NULL) {
        buf->size += written;
        buf->data[buf->size] = '\0';
    }
}

int buf_append(struct buf *buf, const void *data, size_t size)
{
    char *room = buf_reserve(buf, size);

    if (room == NULL) {
        return -1;
    }
    if (size > 0) {
        memcpy(room, data, size);
    }
    buf_commit(buf, size);
    return 0;
}

int buf_append_text(struct buf *buf, const char *text)
{
    return buf_append(buf, text, strlen(text));
}

int buf_printf(struct buf *buf, const char *format, ...)
{
    va_list arguments;
    char *room = NULL;
    int length = 0;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        return -1;
    }
    room = buf_reserve(buf, (size_t)length);
    if (room == NULL) {
        return -1;
    }
    va_start(arguments, format);
    (void)vsnprintf(room, (size_t)length + 1, format, arguments);
    va_end(arguments);
    buf_commit(buf, (size_t)length);
    return 0;
}

size_t buf_append_some(struct buf *buf, const void *data, size_t size)
{
    size_t left = buf->max - buf->size;
    size_t taken = size < left ? size : left;

    return buf_append(buf, data, taken) < 0 ? 0 : taken;
}

void buf_consume(struct buf *buf, size_t n)
{
    if (buf->data == NULL || n == 0) {
        return;
    }
    buf->size -= n;
    memmove(buf->data, buf->data + n, buf->size + 1);
}

char *buf_take(struct buf *buf, size_t *ret_size)
{
    char *data = buf->data == NULL ? alloc_copy("", 0) : buf->data;

    if (ret_size != NULL) {
        *ret_size = buf->size;
    }
    buf->data = NULL;
    buf->size = 0;
    buf->capacity = 0;
    return data;
}

void buf_truncate(struct buf *buf, size_t size)
{
    if (buf->data != NULL) {
        buf->size = size;
        buf->data[size] = '\0';
    }
}

void buf_reset(struct buf *buf)
{
    buf_truncate(buf, 0);
}
