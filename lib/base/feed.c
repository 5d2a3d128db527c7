/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed: a bounded queue of bytes with an eventfd.
 * Owns: the bytes and the eventfd.
 * Threads: any; one lock, held across a non-blocking write.
 * May include: libc.
 */
#include "lib/base/feed.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/fd.h"

int feed_init(struct feed *feed, struct err *err)
{
    feed->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (feed->fd < 0) {
        return err_set(err, ERR_IO, errno, "no descriptor is left: %s", err_errno_text(errno));
    }
    (void)pthread_mutex_init(&feed->lock, NULL);
    feed->waiting = BUF_INIT(FEED_MAX);
    feed->ended = false;
    return 0;
}

void feed_done(struct feed *feed)
{
    buf_done(&feed->waiting);
    (void)pthread_mutex_destroy(&feed->lock);
    fd_clear(&feed->fd);
}

int feed_put(struct feed *feed, const void *data, size_t size, bool end, struct err *err)
{
    const uint64_t one = 1;
    int result = 0;

    (void)pthread_mutex_lock(&feed->lock);
    if (feed->ended) {
        result = err_set(err, ERR_CONFLICT, 0, "standard input was closed already");
    } else if (buf_append(&feed->waiting, data, size) < 0) {
        result = err_set(err, ERR_TOO_MANY_REQUESTS, 0,
                         "the program does not read: a megabyte of input is waiting");
    } else {
        feed->ended = end;
        (void)!write(feed->fd, &one, sizeof(one)); /* full means readable, which is all it says */
    }
    (void)pthread_mutex_unlock(&feed->lock);
    return result;
}

bool feed_write(struct feed *feed, int out, bool *ret_left)
{
    uint64_t news;
    bool broken = false;
    bool finished;

    (void)pthread_mutex_lock(&feed->lock);
    (void)!read(feed->fd, &news, sizeof(news));
    while (feed->waiting.size > 0) {
        ssize_t sent = write(out, feed->waiting.data, feed->waiting.size);

        if (sent > 0) {
            buf_consume(&feed->waiting, (size_t)sent);
        } else if (errno != EINTR) {
            broken = errno != EAGAIN;
            break;
        }
    }
    finished = broken || (feed->ended && feed->waiting.size == 0);
    *ret_left = feed->waiting.size > 0;
    (void)pthread_mutex_unlock(&feed->lock);
    return finished;
}
