/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window: a read buffer over a log file.
 * Owns: the buffer.
 * Threads: one at a time.
 * May include: base.
 */
#include "lib/journal/window.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define READ_AHEAD ((size_t)16 * 1024)

void window_init(struct window *window, int fd)
{
    *window = (struct window){ .fd = fd, .bytes = BUF_INIT((size_t)RECORD_DATA_MAX * 2) };
}

void window_done(struct window *window)
{
    buf_done(&window->bytes);
}

/* Makes [at, at + size) available. NULL when the log has no such bytes. */
static const char *fetch(struct window *window, uint64_t at, size_t size, uint64_t end)
{
    size_t want = size > READ_AHEAD ? size : READ_AHEAD;

    if (at > end || size > end - at) {
        return NULL;
    }
    if (at >= window->offset && at + size <= window->offset + window->bytes.size) {
        return window->bytes.data + (at - window->offset);
    }
    want = want > end - at ? (size_t)(end - at) : want;
    buf_reset(&window->bytes);
    window->offset = at;
    while (window->bytes.size < want) {
        size_t left = want - window->bytes.size;
        char *room = buf_reserve(&window->bytes, left);
        ssize_t got =
            room == NULL ? 0 : pread(window->fd, room, left, (off_t)(at + window->bytes.size));

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        buf_commit(&window->bytes, (size_t)got);
    }
    return window->bytes.size >= size ? window->bytes.data : NULL;
}

int window_head(struct window *window, uint64_t at, uint64_t end, struct record *ret_head)
{
    const char *bytes = fetch(window, at, sizeof(*ret_head), end);

    if (bytes == NULL) {
        return -1;
    }
    memcpy(ret_head, bytes, sizeof(*ret_head));
    return 0;
}

const void *window_data(struct window *window, uint64_t at, uint64_t end, const struct record *head)
{
    const char *bytes = fetch(window, at, sizeof(*head) + head->size, end);

    return bytes != NULL ? bytes + sizeof(*head) : NULL;
}
