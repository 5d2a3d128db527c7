/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: measure how long there was nothing to do.
 * Owns: nothing.
 * Threads: main.
 * May include: config.h, lib/base.
 */
#include "server/idle.h"

#include "lib/base/clock.h"

#define LIMIT_S 300.0
#define AWAITED_S 30.0 /* longer than a client looks for its server (connect.c) */

void idle_init(struct idle *idle, const struct config *config, bool is_activated)
{
    const bool is_started_again = is_activated || config->on_demand;

    idle->limit_s = config->idle_exit_s >= 0 ? config->idle_exit_s : is_started_again ? LIMIT_S : 0;
    idle->is_awaited = config->on_demand;
    idle_touch(idle);
}

void idle_touch(struct idle *idle)
{
    idle->since = clock_mono_ns();
}

void idle_meet(struct idle *idle)
{
    idle->is_awaited = false;
}

static int64_t end_of(const struct idle *idle)
{
    const bool is_long = idle->is_awaited && idle->limit_s < AWAITED_S;
    const double limit_s = is_long ? AWAITED_S : idle->limit_s;

    if (idle->limit_s <= 0 || idle->limit_s > 1e9) {
        return CLOCK_NEVER;
    }
    return idle->since + (int64_t)(limit_s * (double)CLOCK_NS_PER_S);
}

bool idle_is_over(const struct idle *idle)
{
    return clock_passed(end_of(idle));
}

int idle_wait_ms(const struct idle *idle, int longest)
{
    return clock_poll_ms(end_of(idle), longest);
}
