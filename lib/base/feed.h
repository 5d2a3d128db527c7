/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed: bytes from any thread to one poll loop that writes them on: the standard input of a running
 * program. Reference-free: whoever owns it keeps it alive for both sides.
 */
#ifndef KERND_BASE_FEED_H
#define KERND_BASE_FEED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* At most this much waits; then feed_put refuses. */
#define FEED_MAX ((size_t)1024 * 1024)

struct feed {
    int fd; /* eventfd, readable when there is something new */
    pthread_mutex_t lock;
    struct buf waiting;
    bool ended;
};

/* 0, or -1 IO. */
int feed_init(struct feed *feed, struct err *err);
void feed_done(struct feed *feed);

/* All of it or nothing; `end`: none comes behind it. 0, or -1 TOO_MANY_REQUESTS, CONFLICT (ended).
 */
int feed_put(struct feed *feed, const void *data, size_t size, bool end, struct err *err);

/*
 * Writes what out (non-blocking) takes now. True: all was written and none comes any more, or out
 * takes no more at all: close it. *ret_left: something still waits for room in out.
 */
bool feed_write(struct feed *feed, int out, bool *ret_left);

#endif
