/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: move stdin, stdout and stderr of a box and watch for everything that can end it.
 * Owns: nothing beyond the box.
 * Threads: the box's.
 * May include: base, box, initlink, watchdog.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/box/box_cgroup.h"
#include "lib/box/box_internal.h"
#include "lib/box/output.h"

/* After the end of a program its last words are in the pipes, at most as much as they hold; more
 * than this comes from something else that still writes. */
#define LAST_WORDS_MAX ((uint64_t)8 * 1024 * 1024)
/* And the same for what is left in the driver's connection, in readings. */
#define LAST_FRAMES_MAX 4096

enum watched {
    WATCH_STDIN,
    WATCH_FEED,
    WATCH_STDOUT,
    WATCH_STDERR,
    WATCH_INIT,
    WATCH_PEER,
    WATCH_CANCEL,
    WATCHED
};

/* Everything of stdin_data was written; what comes by the feed goes the same way. */
static void feed_on(struct box *box, const struct box_io *io)
{
    if (io->feed == NULL || feed_write(io->feed, box->stdin_fd, &box->stdin_waits)) {
        fd_clear(&box->stdin_fd);
    }
}

/* Writes what the program takes now; closes at the end, or when it reads no more. */
static void feed(struct box *box, const struct box_io *io)
{
    const char *data = io->stdin_data;

    while (box->stdin_fd >= 0 && !io->keep_stdin) {
        size_t left = data == NULL ? 0 : io->stdin_size - box->stdin_sent;
        ssize_t sent = left == 0 ? 0 : write(box->stdin_fd, data + box->stdin_sent, left);

        box->stdin_waits = left > 0;
        if (left == 0) {
            feed_on(box, io);
            break;
        }
        if (sent > 0) {
            box->stdin_sent += (size_t)sent;
        } else if (errno != EAGAIN && errno != EINTR) {
            fd_clear(&box->stdin_fd);
        } else {
            break;
        }
    }
}

static void prepare(const struct box *box, const struct box_io *io, struct pollfd *watched)
{
    /* Its first words may overtake the report that it started; whoever listens gets that first. */
    bool started = box->link.report.has_started;
    const struct pollfd all[WATCHED] = {
        [WATCH_STDIN] = { .fd = box->stdin_waits ? box->stdin_fd : -1, .events = POLLOUT },
        [WATCH_FEED] = { .fd = io->feed == NULL || box->stdin_fd < 0 ? -1 : io->feed->fd,
                         .events = POLLIN },
        [WATCH_STDOUT] = { .fd = started ? box->stdout_fd : -1, .events = POLLIN },
        [WATCH_STDERR] = { .fd = started ? box->stderr_fd : -1, .events = POLLIN },
        [WATCH_INIT] = { .fd = box->link.report.lost ? -1 : box->link.fd, .events = POLLIN },
        [WATCH_PEER] = { .fd = io->peer_fd, .events = POLLIN },
        [WATCH_CANCEL] = { .fd = cancel_poll_fd(io->cancel), .events = POLLIN },
    };

    for (size_t i = 0; i < WATCHED; i++) {
        watched[i] = all[i];
    }
}

/* Tells of the program's start, once, and what it said before anybody pumped. */
static void tell_started(struct box *box, struct box_io *io)
{
    const struct sink_event event = { .kind = SINK_STARTED };

    if (!box->link.report.has_started) {
        return;
    }
    if (!box->told_started && box->link.report.started.start_errno == 0) {
        box->told_started = true;
        sink_emit(io->sink, &event);
    }
    for (int stream = 0; stream < OUTPUT_STREAMS; stream++) {
        if (box->held[stream].size > 0) {
            (void)output_take(box, io, (enum output_stream)stream);
        }
    }
}

/* Everything that is in the pipes now. */
static void drain(struct box *box, struct box_io *io)
{
    output_drain(box, io, LAST_WORDS_MAX);
}

/* The program is gone: what it still sent through its driver counts. True: the round completed. */
static bool last_frames(const struct box_io *io)
{
    for (int i = 0; i < LAST_FRAMES_MAX && io->peer_fd >= 0; i++) {
        struct pollfd peer = { .fd = io->peer_fd, .events = POLLIN };
        int said = 0;

        if (poll(&peer, 1, 0) <= 0) {
            break;
        }
        said = io->peer_ready(io->peer);
        if (said != 0) {
            return said > 0;
        }
    }
    return false;
}

/* True: something ended the round, *ret_stop says what. */
static bool judge(struct box *box, struct box_io *io, const struct pollfd *watched,
                  enum box_stop *ret_stop)
{
    int said = 0;

    if (box->link.report.has_exited) {
        (void)last_frames(io);
        *ret_stop = BOX_STOP_EXITED;
    } else if (box->link.report.lost) {
        *ret_stop = BOX_STOP_LOST;
    } else if (watched[WATCH_PEER].revents != 0 && (said = io->peer_ready(io->peer)) != 0) {
        *ret_stop = said > 0 ? BOX_STOP_PEER_DONE : BOX_STOP_PEER_LOST;
    } else if (cancel_get(io->cancel) != CANCEL_NONE) {
        *ret_stop = BOX_STOP_CANCELLED;
    } else if (clock_passed(io->deadline)) {
        *ret_stop = BOX_STOP_DEADLINE;
    } else if (watchdog_look(&box->watchdog)) {
        *ret_stop = BOX_STOP_OOM;
    } else if (diskwatch_look(&box->diskwatch)) {
        *ret_stop = BOX_STOP_DISK;
    } else {
        return false;
    }
    return true;
}

/* When something happens even if nobody says anything. */
static int64_t next_look(const struct box *box, const struct box_io *io)
{
    int64_t look = clock_earlier(box->watchdog.next_ns, box->diskwatch.next_ns);

    return clock_earlier(io->deadline, look);
}

enum box_stop box_pump(struct box *box, struct box_io *io)
{
    struct pollfd watched[WATCHED];
    enum box_stop stop = BOX_STOP_LOST;

    feed(box, io);
    tell_started(box, io);
    do {
        prepare(box, io, watched);
        (void)poll(watched, WATCHED, clock_poll_ms(next_look(box, io), -1));
        if ((watched[WATCH_STDIN].revents | watched[WATCH_FEED].revents) != 0) {
            feed(box, io);
        }
        if (watched[WATCH_STDOUT].revents != 0) {
            output_take(box, io, OUTPUT_STDOUT);
        }
        if (watched[WATCH_STDERR].revents != 0) {
            output_take(box, io, OUTPUT_STDERR);
        }
        if (watched[WATCH_INIT].revents != 0) {
            initlink_hear(&box->link);
            tell_started(box, io);
        }
    } while (!judge(box, io, watched, &stop));
    if (stop == BOX_STOP_EXITED || stop == BOX_STOP_PEER_DONE) {
        drain(box, io);
    }
    /* The kernel kills a box that is above its memory cap whole, kernd-init and all. */
    if ((stop == BOX_STOP_LOST || stop == BOX_STOP_PEER_LOST) && box_cgroup_oom(box)) {
        stop = BOX_STOP_OOM;
    }
    box->stop = stop;
    box->pumped = true;
    return stop;
}
