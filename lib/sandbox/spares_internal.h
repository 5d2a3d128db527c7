/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spares_internal: the body of the spares, for spares*.c alone.
 */
#ifndef KERND_SANDBOX_SPARES_INTERNAL_H
#define KERND_SANDBOX_SPARES_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/cancel.h"
#include "lib/base/pool.h"
#include "lib/sandbox/shelf.h"
#include "lib/sandbox/spares.h"

/* What is not fixed from the start on is under the lock. */
struct spares {
    struct sandbox *sandbox;
    struct pool *lane;
    size_t max;
    struct cancel cancel;
    struct pool_job give_way;
    atomic_bool giving_way; /* the job is under way */
    pthread_mutex_t lock;
    pthread_cond_t booted; /* a boot ended, well or not */
    struct shelf *shelves;
    size_t shelf_count;
    size_t waiting;
    size_t booting;
    uint64_t hits;
    uint64_t misses;
    bool closed;
};

/*
 * Under the lock, which is given back meanwhile: the shelf is empty, and a call of this environment
 * comes. If one of its spares is being booted and no other call waits for it, it will be ready
 * before a box could be that begins now, and competes with it for the processors; so the call
 * waits, as long as the last boot took at most. Who looks then may find one, or none.
 */
void spares_refill_await(struct spares *spares, struct shelf *shelf, const struct strv *env);

#endif
