/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spares_refill: booting what is missing on the shelves.
 * Owns: a boot on its way.
 * Threads: any; boots run on the spares' lane.
 * May include: all of lib.
 */
#include <pthread.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/container.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/spares_internal.h"
#include "lib/sandbox/templates.h"

#define FAILURES_MAX 3
/* What one uses while it waits: a launcher and kernd-init, and an interpreter that is up. */
#define SPARE_BYTES (UINT64_C(32) << 20)

/* One boot on its way. */
struct boot {
    struct pool_job job;
    struct shelf *shelf;
    struct budget_claim memory;
};

static void free_boot(struct spares *spares, struct boot *boot)
{
    capacity_give(spares->sandbox, &boot->memory, 0);
    free(boot);
}

/* What else was wanted for calls to come, once nothing is under way that the next may take. */
static void start_templates(struct spares *spares)
{
    size_t booting;

    (void)pthread_mutex_lock(&spares->lock);
    booting = spares->booting;
    (void)pthread_mutex_unlock(&spares->lock);
    if (booting == 0) {
        templates_start(spares->sandbox->templates);
    }
}

static void boot_run(struct pool_job *job)
{
    struct boot *boot = CONTAINER_OF(job, struct boot, job);
    struct shelf *shelf = boot->shelf;
    struct spares *spares = shelf->spares;
    struct budget_stats memory;
    struct spare *spare;

    pool_engage(spares->sandbox->pool, true);
    spare = spare_boot(spares->sandbox, shelf, &spares->cancel);
    pool_engage(spares->sandbox->pool, false);
    budget_stats(spares->sandbox->budget, &memory);
    (void)pthread_mutex_lock(&spares->lock);
    shelf->booting--;
    spares->booting--;
    shelf->failures = spare == NULL ? shelf->failures + 1 : 0;
    if (spare != NULL) {
        spare->memory = boot->memory;
        boot->memory = (struct budget_claim){ .amount = 0 };
    }
    /* It may have come too late to be asked to give way. */
    if (spare != NULL && !shelf->closed && !spares->closed && memory.waiting == 0) {
        spare->next = shelf->first;
        shelf->first = CLEANUP_TAKE(spare);
        shelf->count++;
        shelf->filled = true;
        spares->waiting++;
    }
    shelf_release(shelf);
    (void)pthread_mutex_unlock(&spares->lock);
    spare_free(spare);
    free_boot(spares, boot);
    start_templates(spares);
}

static void boot_drop(struct pool_job *job)
{
    struct boot *boot = CONTAINER_OF(job, struct boot, job);
    struct spares *spares = boot->shelf->spares;

    (void)pthread_mutex_lock(&spares->lock);
    boot->shelf->booting--;
    spares->booting--;
    shelf_release(boot->shelf);
    (void)pthread_mutex_unlock(&spares->lock);
    free_boot(spares, boot);
}

/*
 * Locked. Also while calls wait: those of a caller with calls in the queue take none (pool.h,
 * favoured), so what is booted then is for others, who must not find the shelf empty.
 */
static bool may_boot(const struct spares *spares, const struct shelf *shelf)
{
    return !spares->closed && shelf->failures < FAILURES_MAX &&
           shelf->count + shelf->booting < shelf->target &&
           spares->waiting + spares->booting < spares->max;
}

static void refill(struct spares *spares, struct shelf *shelf)
{
    while (may_boot(spares, shelf)) {
        struct boot *boot = alloc_zero(1, sizeof(*boot));

        boot->shelf = shelf;
        boot->job.run = boot_run;
        boot->job.drop = boot_drop;
        if (!budget_raise_spare(spares->sandbox->budget, &boot->memory, SPARE_BYTES) ||
            pool_submit(spares->lane, &boot->job, NULL) < 0) {
            free_boot(spares, boot);
            return;
        }
        shelf->references++;
        shelf->booting++;
        spares->booting++;
    }
}

void spares_refill(struct spares *spares)
{
    (void)pthread_mutex_lock(&spares->lock);
    for (struct shelf *shelf = spares->shelves; shelf != NULL; shelf = shelf->next) {
        refill(spares, shelf);
    }
    (void)pthread_mutex_unlock(&spares->lock);
    start_templates(spares);
}
