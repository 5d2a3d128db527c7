/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_queue: cells that wait for their turn in a kernel, first come, first served. A plain value
 * under its owner's lock. For lib/sandbox.
 */
#ifndef KERND_SANDBOX_WARM_QUEUE_H
#define KERND_SANDBOX_WARM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

struct execution;

/* Borrowed executions, linked by their next_cell. Zeroed: empty. */
struct warm_queue {
    struct execution *first;
    struct execution *last;
    size_t count;
};

void warm_queue_put(struct warm_queue *queue, struct execution *execution);

/* The first one, NULL when there is none. */
struct execution *warm_queue_take(struct warm_queue *queue);

/* False: it is not in the queue. */
bool warm_queue_remove(struct warm_queue *queue, const struct execution *execution);

/* How many are before it; -1: it is not in the queue. */
long warm_queue_position(const struct warm_queue *queue, const struct execution *execution);

#endif
