/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink: where the events of one execution go, in order, while it runs. Handed down; the producer
 * never knows whether a journal, a stream or nobody listens.
 *
 * emit is called by the thread that runs the execution, never concurrently; it must not block for
 * long (a slow reader never stalls a box) and copies what it keeps.
 */
#ifndef KERND_BASE_SINK_H
#define KERND_BASE_SINK_H

#include <stddef.h>
#include <stdint.h>

enum sink_kind {
    SINK_STARTED, /* the program really started */
    SINK_STDOUT,  /* raw bytes as read from the pipe, within the output cap */
    SINK_STDERR,
    SINK_RESULT,    /* one rich result: an encoded bundle (lib/cell/bundle.h) */
    SINK_TRUNCATED, /* value: 1 stdout, 2 stderr; sent once per stream */
};

struct sink_event {
    enum sink_kind kind;
    const void *data;
    size_t size;
    uint64_t value; /* by kind: offset of the first byte in its stream, or as told above */
};

struct sink {
    void (*emit)(struct sink *sink, const struct sink_event *event);
};

/* NULL sink: nobody listens. */
static inline void sink_emit(struct sink *sink, const struct sink_event *event)
{
    if (sink != NULL) {
        sink->emit(sink, event);
    }
}

#endif
