/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spares_internal: the body of the spares, for spares*.c alone.
 */
#ifndef KERND_SANDBOX_SPARES_INTERNAL_H
#define KERND_SANDBOX_SPARES_INTERNAL_H

#include <pthread.h>

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
    pthread_mutex_t lock;
    struct shelf *shelves;
    size_t shelf_count;
    size_t waiting;
    size_t booting;
    uint64_t hits;
    uint64_t misses;
    bool closed;
};

#endif
