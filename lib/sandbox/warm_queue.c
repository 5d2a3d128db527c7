/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_queue: a list of cells.
 * Owns: nothing.
 * Threads: under the lock of whoever has the queue.
 * May include: lib/sandbox.
 */
#include "lib/sandbox/warm_queue.h"

#include "lib/sandbox/execution_internal.h"

void warm_queue_put(struct warm_queue *queue, struct execution *execution)
{
    execution->next_cell = NULL;
    if (queue->last == NULL) {
        queue->first = execution;
    } else {
        queue->last->next_cell = execution;
    }
    queue->last = execution;
    queue->count++;
}

struct execution *warm_queue_take(struct warm_queue *queue)
{
    struct execution *execution = queue->first;

    if (execution != NULL) {
        (void)warm_queue_remove(queue, execution);
    }
    return execution;
}

bool warm_queue_remove(struct warm_queue *queue, const struct execution *execution)
{
    struct execution **at = &queue->first;
    struct execution *before = NULL;

    while (*at != NULL && *at != execution) {
        before = *at;
        at = &(*at)->next_cell;
    }
    if (*at == NULL) {
        return false;
    }
    *at = execution->next_cell;
    if (queue->last == execution) {
        queue->last = before;
    }
    queue->count--;
    return true;
}

long warm_queue_position(const struct warm_queue *queue, const struct execution *execution)
{
    const struct execution *at = queue->first;
    long position = 0;

    while (at != NULL && at != execution) {
        at = at->next_cell;
        position++;
    }
    return at == NULL ? -1 : position;
}
