/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve: the order in which what is kept ahead gives way.
 * Owns: a thread, so that who waits for memory does not wait for boots.
 * Threads: any may ask; what gives way is ended on its own.
 * May include: all of lib.
 */
#include "lib/sandbox/reserve.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/budget.h"
#include "lib/base/container.h"
#include "lib/base/pool.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/spares.h"
#include "lib/sandbox/templates.h"

struct reserve {
    struct sandbox *sandbox;
    struct pool *lane;
    struct pool_job job;
    atomic_bool asked; /* the job waits to run */
};

static void give(struct pool_job *job)
{
    struct reserve *reserve = CONTAINER_OF(job, struct reserve, job);
    struct sandbox *sandbox = reserve->sandbox;
    uint64_t missing;

    /* Who asks from here on has the job run again. */
    atomic_store(&reserve->asked, false);
    spares_give_way(sandbox->spares);
    missing = budget_missing(sandbox->budget);
    if (missing > 0) {
        templates_yield(sandbox->templates, missing);
    }
}

static void drop(struct pool_job *job)
{
    (void)job;
}

struct reserve *reserve_new(struct sandbox *sandbox, struct err *err)
{
    struct reserve *reserve = alloc_zero(1, sizeof(*reserve));

    reserve->sandbox = sandbox;
    reserve->job = (struct pool_job){ .run = give, .drop = drop };
    reserve->lane = pool_new("reserve", 1, 1, err);
    if (reserve->lane == NULL) {
        free(reserve);
        return NULL;
    }
    return reserve;
}

void reserve_free(struct reserve *reserve)
{
    if (reserve != NULL) {
        pool_free(reserve->lane);
        free(reserve);
    }
}

void reserve_ask(void *context)
{
    struct reserve *reserve = context;

    if (!atomic_exchange(&reserve->asked, true) &&
        pool_submit(reserve->lane, &reserve->job, NULL) < 0) {
        atomic_store(&reserve->asked, false);
    }
}
