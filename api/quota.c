/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: RateLimit-Policy and RateLimit of calls that wait in the queue.
 * Owns: nothing.
 * Threads: any.
 * May include: lib/base, lib/sandbox.
 */
#include "api/quota.h"

#include "api/resource.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/pool.h"
#include "lib/sandbox/sandbox.h"

#define UNIT "qu=\"concurrent-requests\""

void quota_write(const struct pool_share *share, struct api_reply *reply)
{
    const size_t left =
        share->running < share->running_max ? share->running_max - share->running : 0;
    CLEANUP_FREE char *policy = alloc_printf("\"running\";q=%zu;" UNIT ", \"waiting\";q=%zu;" UNIT,
                                             share->running_max, share->queued_max);
    CLEANUP_FREE char *now =
        alloc_printf("\"running\";r=%zu, \"waiting\";r=%zu", left, share->room);

    api_reply_header(reply, "RateLimit-Policy", policy);
    api_reply_header(reply, "RateLimit", now);
}

void quota_tell(struct api_call *call)
{
    struct pool_share share;

    if (call->queues) {
        sandbox_stats_share(call->api->sandbox, call->caller, &share);
        quota_write(&share, &call->reply);
    }
}
