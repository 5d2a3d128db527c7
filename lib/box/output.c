/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read a program's output.
 * Owns: nothing beyond the box.
 * Threads: the box's.
 * May include: base, box.
 */
#include "lib/box/output.h"

#include <errno.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/fd.h"

/* What a pipe holds by default (pipe(7)). */
#define SCRATCH_SIZE ((size_t)64 * 1024)

/* The fields of struct box_io that belong to one stream. */
struct stream {
    enum sink_kind kind;
    struct buf *capture;
    bool *truncated;
    uint64_t *total;
    uint64_t number; /* as in SINK_TRUNCATED */
};

static struct stream stream_of(struct box_io *io, enum output_stream which)
{
    if (which == OUTPUT_STDOUT) {
        return (struct stream){ SINK_STDOUT, io->capture_stdout, &io->truncated_stdout,
                                &io->total_stdout, 1 };
    }
    return (struct stream){ SINK_STDERR, io->capture_stderr, &io->truncated_stderr,
                            &io->total_stderr, 2 };
}

static void keep(struct box_io *io, enum output_stream which, const char *data, size_t size)
{
    struct stream stream = stream_of(io, which);
    uint64_t offset = *stream.total;
    uint64_t room = offset < io->max_output ? io->max_output - offset : 0;
    struct sink_event event = { .kind = stream.kind, .data = data, .value = offset };

    event.size = size < room ? size : (size_t)room;
    *stream.total += size;
    if (event.size > 0) {
        if (stream.capture != NULL) {
            (void)buf_append_some(stream.capture, data, event.size);
        }
        sink_emit(io->sink, &event);
    }
    if (event.size < size && !*stream.truncated) {
        const struct sink_event cut = { .kind = SINK_TRUNCATED, .value = stream.number };

        *stream.truncated = true;
        sink_emit(io->sink, &cut);
    }
}

static int *pipe_of(struct box *box, enum output_stream which)
{
    return which == OUTPUT_STDOUT ? &box->stdout_fd : &box->stderr_fd;
}

/* Bytes read into box->scratch; 0 when there is nothing now, or no more at all. */
static size_t read_pipe(struct box *box, enum output_stream which)
{
    int *fd = pipe_of(box, which);
    ssize_t got = 0;

    if (*fd < 0) {
        return 0;
    }
    if (box->scratch == NULL) {
        box->scratch = alloc_resize(NULL, 1, SCRATCH_SIZE);
    }
    got = read(*fd, box->scratch, SCRATCH_SIZE);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        fd_clear(fd);
    }
    return got > 0 ? (size_t)got : 0;
}

bool output_may_hold(const struct box *box, enum output_stream which)
{
    return box->held[which].max - box->held[which].size >= SCRATCH_SIZE;
}

void output_hold(struct box *box, enum output_stream which)
{
    if (output_may_hold(box, which)) {
        size_t got = read_pipe(box, which);

        (void)buf_append(&box->held[which], box->scratch, got);
    }
}

uint64_t output_take(struct box *box, struct box_io *io, enum output_stream which)
{
    struct buf *held = &box->held[which];
    size_t got = held->size;

    if (got > 0) {
        if (io != NULL) {
            keep(io, which, held->data, got);
        }
        buf_done(held);
        return got;
    }
    got = read_pipe(box, which);
    if (got > 0 && io != NULL) {
        keep(io, which, box->scratch, got);
    }
    return got;
}

void output_drain(struct box *box, struct box_io *io, uint64_t max)
{
    static const enum output_stream both[] = { OUTPUT_STDOUT, OUTPUT_STDERR };

    for (size_t i = 0; i < 2; i++) {
        uint64_t sum = 0;
        uint64_t got = 0;

        do {
            got = output_take(box, io, both[i]);
            sum += got;
        } while (got > 0 && sum < max);
    }
}
