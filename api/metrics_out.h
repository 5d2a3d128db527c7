/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_out: writes the Prometheus text format 0.0.4.
 *
 *     metrics_out_family(&out, "kernd_queue_length", "gauge", "Calls that wait.");
 *     metrics_out_value(&out, NULL, 3);
 *
 * All samples of a family follow it before the next one. Names and help are literals that need no
 * escaping. A failure (the buffer's maximum) is remembered. Not thread-safe.
 */
#ifndef KERND_API_METRICS_OUT_H
#define KERND_API_METRICS_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct metrics_out {
    struct buf *out;    /* borrowed */
    const char *family; /* the one that samples belong to */
    bool failed;
};

void metrics_out_init(struct metrics_out *out, struct buf *buf);

/* Begins a family: type is "counter" (the name ends in _total), "gauge" or "histogram". */
void metrics_out_family(struct metrics_out *out, const char *name, const char *type,
                        const char *help);

/* name, value, name, value ..., NULL; NULL alone for no label. Values are escaped. */
void metrics_out_value(struct metrics_out *out, const char *const *labels, double value);

struct metrics_out_histogram {
    const double *bounds;    /* upper ones, rising; the last is infinite */
    const uint64_t *at_most; /* cumulative */
    size_t count;            /* of buckets */
    double sum;
};
void metrics_out_histogram(struct metrics_out *out, const char *const *labels,
                           const struct metrics_out_histogram *histogram);

/* A whole family of one sample without labels. */
void metrics_out_single(struct metrics_out *out, const char *name, const char *type,
                        const char *help, double value);

#endif
