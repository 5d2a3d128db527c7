/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream: picks the events of one kind out of a log.
 * Owns: its reader.
 * Threads: one at a time.
 * May include: base.
 */
#include "lib/journal/stream.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/journal/reader.h"

struct stream {
    struct tape *tape;
    uint32_t kind;
    struct reader *reader;
    struct tape_event event; /* the piece at hand; size 0: none */
    uint64_t start;          /* offset of its first byte in the stream */
};

struct stream *stream_new(struct tape *tape, uint32_t kind)
{
    struct stream *stream = alloc_zero(1, sizeof(*stream));

    stream->tape = tape_ref(tape);
    stream->kind = kind;
    stream->reader = reader_new(tape, 0, NULL, NULL);
    return stream;
}

void stream_free(struct stream *stream)
{
    if (stream != NULL) {
        reader_free(stream->reader);
        tape_unref(stream->tape);
        free(stream);
    }
}

static void rewind_to_start(struct stream *stream)
{
    reader_free(stream->reader);
    stream->reader = reader_new(stream->tape, 0, NULL, NULL);
    stream->event.size = 0;
    stream->start = 0;
}

/* The next event of the kind. False when there is none (yet): the old piece stays as passed. */
static bool next_piece(struct stream *stream)
{
    struct tape_event event;

    stream->start += stream->event.size;
    stream->event.size = 0;
    while (reader_next(stream->reader, &event) == READER_EVENT) {
        if (event.kind == stream->kind) {
            stream->event = event;
            return true;
        }
    }
    return false;
}

size_t stream_read(struct stream *stream, uint64_t offset, void *out, size_t size)
{
    size_t done = 0;

    if (offset < stream->start) {
        rewind_to_start(stream);
    }
    while (done < size) {
        uint64_t at = offset + done - stream->start;
        size_t piece;

        if (at >= stream->event.size) {
            if (!next_piece(stream)) {
                break;
            }
            continue;
        }
        piece = stream->event.size - (size_t)at;
        piece = piece < size - done ? piece : size - done;
        memcpy((char *)out + done, (const char *)stream->event.data + at, piece);
        done += piece;
    }
    return done;
}
