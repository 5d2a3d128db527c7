/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window: reads records of a log file through a buffer. For lib/journal alone; not thread-safe.
 */
#ifndef KERND_JOURNAL_WINDOW_H
#define KERND_JOURNAL_WINDOW_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/journal/record.h"

struct window {
    int fd;          /* borrowed */
    uint64_t offset; /* in the file, of the first byte in the buffer */
    struct buf bytes;
};

void window_init(struct window *window, int fd);
void window_done(struct window *window);

/* The head of the record at `at`, in a log of `end` bytes. 0, or -1: cut short or unreadable. */
int window_head(struct window *window, uint64_t at, uint64_t end, struct record *ret_head);

/* Its data, good until the next call. NULL: cut short or unreadable. */
const void *window_data(struct window *window, uint64_t at, uint64_t end,
                        const struct record *head);

#endif
