/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_out: events of an execution as lines of NDJSON or as blocks of an event stream (SSE).
 *
 * One JSON object each: "type", "seq", "time" and what belongs to the type. As SSE the same object
 * is the data, with the seq as id and the type as event. A ping has no seq: it is no event. Pure;
 * any thread.
 */
#ifndef KERND_API_EVENT_OUT_H
#define KERND_API_EVENT_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/sandbox/events.h"

struct event_out {
    bool sse;       /* else NDJSON */
    bool base64;    /* output as its exact bytes */
    const char *id; /* of the execution; borrowed */
};

/* Appends one event. 0, or -1 when it would pass out's maximum: out ends in the middle then. */
int event_out_write(struct buf *out, const struct event_out *how, const struct event *event);

int event_out_ping(struct buf *out, const struct event_out *how);

/* The terminal event of an execution whose server was killed: the one that was never written. */
int event_out_lost(struct buf *out, const struct event_out *how, uint64_t seq);

/* Does no event come after it? */
bool event_out_is_last(const struct event *event);

#endif
