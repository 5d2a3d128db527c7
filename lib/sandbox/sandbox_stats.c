/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_stats: how busy a sandbox is.
 * Owns: nothing.
 * Threads: any.
 * May include: all of lib.
 */
#include <stdio.h>

#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/spares.h"
#include "lib/sandbox/templates.h"

#define MIB (UINT64_C(1) << 20)

void sandbox_stats(struct sandbox *sandbox, struct sandbox_stats *ret_stats)
{
    struct pool_stats pool;
    struct store_stats store;
    struct spares_stats spares;
    struct templates_stats templates;
    struct budget_stats memory;

    templates_stats(sandbox->templates, &templates);
    budget_stats(sandbox->budget, &memory);
    spares_stats(sandbox->spares, &spares);
    pool_stats(sandbox->pool, &pool);
    store_stats(sandbox->store, &store);
    *ret_stats = (struct sandbox_stats){
        .run_threads = pool.threads,
        .running = pool.running,
        .queued = pool.queued,
        .queue_max = pool.queue_max,
        .callers = pool.callers,
        .service_ns = pool.service_ns,
        .memory_mb = memory.used / MIB,
        .boxes = boxes_running(sandbox->boxes),
        .spares = spares.waiting,
        .spare_hits = spares.hits,
        .spare_misses = spares.misses,
        .templates_enabled = templates.enabled,
        .templates = templates.up,
        .forks = templates.forks,
        .records_queued = store.queued,
        .records_dropped = store.dropped,
        .executions_total = atomic_load(&sandbox->executions_total),
    };
    (void)snprintf(ret_stats->templates_why, sizeof(ret_stats->templates_why), "%s", templates.why);
}

void sandbox_stats_share(struct sandbox *sandbox, uint64_t caller, struct pool_share *ret_share)
{
    pool_share(sandbox->pool, caller, ret_share);
}
