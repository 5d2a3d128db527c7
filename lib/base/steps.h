/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps: where the time of a call goes. A call carries its own marks; a histogram adds up all of
 * them.
 *
 * A mark reads the clock once (vDSO, about 20 ns) and belongs to one thread at a time, as the call
 * does. The histogram is for any thread: counters, no lock.
 */
#ifndef KERND_BASE_STEPS_H
#define KERND_BASE_STEPS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* In their order. Each is the time since the mark of the one before. */
enum step {
    STEP_ACCEPT, /* from the request line to the end of the head */
    STEP_GUARD,  /* Host, Origin, token, content type; the body read */
    STEP_PARSE,  /* waiting for a quick thread; JSON into a request */
    STEP_ADMIT,  /* maxima, paths, rights; its record and log begun; queued */
    STEP_QUEUE,  /* waiting for a run thread */
    STEP_TAKE,   /* a box: taken from those started ahead, or started; files put in */
    STEP_SEND,   /* the program handed over */
    STEP_RUN,    /* until it ended and its output was read */
    STEP_REAP,   /* until nothing of it ran any more; its usage read */
    STEP_DIFF,   /* what changed in the workspace; files fetched */
    STEP_RECORD, /* the result rendered, logged and recorded */
    STEP_REPLY,  /* the answer written and handed to the event thread */
    STEPS,
};

struct steps {
    int64_t last_ns;
    int64_t spent_ns[STEPS]; /* of those marked; the rest is 0 */
};

/* "accept" */
const char *steps_name(enum step step);

/* The first step begins now, or began then (clock_mono_ns). */
void steps_begin(struct steps *steps, int64_t began_ns);

/* What passed since the last mark was this step. Marked twice, it is the sum. */
void steps_mark(struct steps *steps, enum step step);

/* Takes over what another part of the same call marked, and where its time stopped. */
void steps_join(struct steps *steps, const struct steps *part);

/*
 * Appends the marked steps as the value of a Server-Timing header (W3C Server Timing):
 * "accept;dur=0.021, guard;dur=0.034" in milliseconds. 0, or -1 at out's maximum.
 */
int steps_put_header(const struct steps *steps, struct buf *out);

/* ---- all calls together ---- */

/* Upper bounds: 16 us, doubled up to 33 s; above it the last one, without a bound. */
#define STEPS_BUCKETS 23
#define STEPS_BOUND_FIRST_US 16

struct steps_totals {
    struct {
        atomic_ullong counts[STEPS_BUCKETS];
        atomic_ullong sum_ns;
    } of[STEPS];
};

/* Adds each marked step once. */
void steps_add(struct steps_totals *totals, const struct steps *steps);

/* One step of all calls. The numbers are read one after another while others count on. */
struct steps_row {
    const char *name;
    uint64_t count;
    double sum_s;
    double bounds_s[STEPS_BUCKETS];  /* the last one is infinite */
    uint64_t at_most[STEPS_BUCKETS]; /* cumulative, as Prometheus wants it */
};

/*
 * The time that this share (0 to 1) of a step's calls stayed below, in seconds: a straight line
 * through the bucket that it falls in, as Prometheus estimates it; in the last bucket, its lower
 * bound. -1: there was no call.
 */
double steps_quantile_s(const struct steps_row *row, double share);

/* Calls each for every step in order, also for those that never happened. */
void steps_each(const struct steps_totals *totals,
                void (*each)(void *context, const struct steps_row *row), void *context);

#endif
