/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: take calls to another lane.
 * Owns: the jobs that wait there.
 * Threads: handlers on the quick lane; work on a thread of the sandbox's.
 * May include: lib/base, lib/sandbox.
 */
#include "api/away.h"

#include <stdlib.h>

#include "api/resource.h"
#include "lib/base/alloc.h"
#include "lib/base/container.h"
#include "lib/base/pool.h"
#include "lib/sandbox/sandbox.h"

struct away {
    struct pool_job job;
    struct api_call *call;
    void (*work)(struct api_call *call);
};

static void run(struct pool_job *job)
{
    struct away *away = CONTAINER_OF(job, struct away, job);
    struct api_call *call = away->call;
    void (*work)(struct api_call * call) = away->work;

    free(away);
    work(call);
}

static void drop(struct pool_job *job)
{
    struct away *away = CONTAINER_OF(job, struct away, job);
    struct api_call *call = away->call;
    struct err err = ERR_INIT;

    free(away);
    (void)err_set(&err, ERR_SHUTTING_DOWN, 0, "the server is shutting down");
    resource_fail(call, &err);
}

void away_run(struct api_call *call, void (*work)(struct api_call *call))
{
    struct away *away = alloc_zero(1, sizeof(*away));
    struct err err = ERR_INIT;

    away->call = call;
    away->work = work;
    away->job = (struct pool_job){ .run = run, .drop = drop, .caller = call->caller };
    if (sandbox_work(call->api->sandbox, &away->job, &err) < 0) {
        free(away);
        resource_fail(call, &err);
    }
}
