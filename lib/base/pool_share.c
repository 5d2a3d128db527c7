/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_share: what a caller may still have of a pool.
 * Owns: nothing.
 * Threads: any; the pool's lock for a look.
 * May include: libc.
 */
#include "lib/base/pool_internal.h"

/* As many of the queued jobs as there are idle threads don't wait: they are being taken. */
static size_t room(size_t most, size_t queued, size_t idle)
{
    const size_t waiting = queued > idle ? queued - idle : 0;

    return waiting < most ? most - waiting : 0;
}

void pool_share(struct pool *pool, uint64_t caller, struct pool_share *ret_share)
{
    const struct pool_rules *rules = &pool->rules;
    size_t in_all;
    size_t idle;

    *ret_share = (struct pool_share){ .running = 0 };
    (void)pthread_mutex_lock(&pool->lock);
    idle = pool->seats - pool->running;
    in_all = room(pool->queue_max, pool->turns.queued, idle);
    ret_share->running = turns_running_of(&pool->turns, caller);
    ret_share->running_max = rules->per_caller > 0 ? rules->per_caller : pool->seats;
    ret_share->queued = turns_queued_of(&pool->turns, caller);
    ret_share->queued_max = rules->queue_per_caller > 0 ? rules->queue_per_caller : pool->queue_max;
    (void)pthread_mutex_unlock(&pool->lock);
    ret_share->room = room(ret_share->queued_max, ret_share->queued, idle);
    ret_share->room = ret_share->room < in_all ? ret_share->room : in_all;
}
