/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps: marks of one call, and counters of all.
 * Owns: nothing.
 * Threads: marks one at a time, totals any.
 * May include: base.
 */
#include "lib/base/steps.h"

#include <math.h>

#include "lib/base/clock.h"
#include "lib/base/digits.h"

#define NS_PER_US 1000
#define US_PER_S 1e6

static const char *const names[STEPS] = {
    [STEP_ACCEPT] = "accept", [STEP_GUARD] = "guard",   [STEP_PARSE] = "parse",
    [STEP_ADMIT] = "admit",   [STEP_QUEUE] = "queue",   [STEP_TAKE] = "take",
    [STEP_SEND] = "send",     [STEP_RUN] = "run",       [STEP_REAP] = "reap",
    [STEP_DIFF] = "diff",     [STEP_RECORD] = "record", [STEP_REPLY] = "reply",
};

const char *steps_name(enum step step)
{
    return names[step];
}

void steps_begin(struct steps *steps, int64_t began_ns)
{
    *steps = (struct steps){ .last_ns = began_ns };
}

void steps_mark(struct steps *steps, enum step step)
{
    int64_t now_ns = clock_mono_ns();

    steps->spent_ns[step] += now_ns - steps->last_ns;
    steps->last_ns = now_ns;
}

void steps_join(struct steps *steps, const struct steps *part)
{
    for (size_t i = 0; i < STEPS; i++) {
        steps->spent_ns[i] += part->spent_ns[i];
    }
    if (part->last_ns > steps->last_ns) {
        steps->last_ns = part->last_ns;
    }
}

/* In milliseconds, as the header has them. */
static int put_step(struct buf *out, const char *name, int64_t spent_ns)
{
    const uint64_t us = ((uint64_t)spent_ns + NS_PER_US / 2) / NS_PER_US;

    if (buf_append_text(out, out->size > 0 ? ", " : "") < 0 || buf_append_text(out, name) < 0 ||
        buf_append_text(out, ";dur=") < 0) {
        return -1;
    }
    return digits_put_thousandths(out, us, false);
}

int steps_put_header(const struct steps *steps, struct buf *out)
{
    int result = 0;

    for (size_t i = 0; i < STEPS && result == 0; i++) {
        if (steps->spent_ns[i] > 0) {
            result = put_step(out, names[i], steps->spent_ns[i]);
        }
    }
    return result;
}

static size_t bucket_of(int64_t spent_ns)
{
    uint64_t bound_ns = (uint64_t)STEPS_BOUND_FIRST_US * NS_PER_US;
    size_t bucket = 0;

    while (bucket < STEPS_BUCKETS - 1 && (uint64_t)spent_ns > bound_ns << bucket) {
        bucket++;
    }
    return bucket;
}

void steps_add(struct steps_totals *totals, const struct steps *steps)
{
    for (size_t i = 0; i < STEPS; i++) {
        if (steps->spent_ns[i] > 0) {
            (void)atomic_fetch_add_explicit(&totals->of[i].counts[bucket_of(steps->spent_ns[i])], 1,
                                            memory_order_relaxed);
            (void)atomic_fetch_add_explicit(&totals->of[i].sum_ns,
                                            (unsigned long long)steps->spent_ns[i],
                                            memory_order_relaxed);
        }
    }
}

static void read_row(const struct steps_totals *totals, size_t step, struct steps_row *ret_row)
{
    struct steps_row row = { .name = names[step] };

    for (size_t i = 0; i < STEPS_BUCKETS; i++) {
        row.count += atomic_load_explicit(&totals->of[step].counts[i], memory_order_relaxed);
        row.at_most[i] = row.count;
        row.bounds_s[i] = i + 1 < STEPS_BUCKETS
                              ? (double)((uint64_t)STEPS_BOUND_FIRST_US << i) / US_PER_S
                              : HUGE_VAL;
    }
    row.sum_s = (double)atomic_load_explicit(&totals->of[step].sum_ns, memory_order_relaxed) /
                (double)CLOCK_NS_PER_S;
    *ret_row = row;
}

void steps_each(const struct steps_totals *totals,
                void (*each)(void *context, const struct steps_row *row), void *context)
{
    for (size_t i = 0; i < STEPS; i++) {
        struct steps_row row;

        read_row(totals, i, &row);
        each(context, &row);
    }
}

double steps_quantile_s(const struct steps_row *row, double share)
{
    const double wanted = share * (double)row->count;
    double low_s = 0;
    uint64_t below = 0;

    if (row->count == 0) {
        return -1;
    }
    for (size_t i = 0; i < STEPS_BUCKETS - 1; i++) {
        if ((double)row->at_most[i] >= wanted && row->at_most[i] > below) {
            return low_s + (row->bounds_s[i] - low_s) * (wanted - (double)below) /
                               (double)(row->at_most[i] - below);
        }
        below = row->at_most[i];
        low_s = row->bounds_s[i];
    }
    return low_s;
}
