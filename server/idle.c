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

void idle_init(struct idle *idle, const struct config *config, bool is_activated)
{
    const bool is_started_again = is_activated || config->on_demand;

    idle->limit_s = config->idle_exit_s >= 0 ? config->idle_exit_s : is_started_again ? LIMIT_S : 0;
    idle_touch(idle);
}

void idle_touch(struct idle *idle)
{
    idle->since = clock_mono_ns();
}

static int64_t end_of(const struct idle *idle)
{
    if (idle->limit_s <= 0 || idle->limit_s > 1e9) {
        return CLOCK_NEVER;
    }
    return idle->since + (int64_t)(idle->limit_s * (double)CLOCK_NS_PER_S);
}

bool idle_is_over(const struct idle *idle)
{
    return clock_passed(end_of(idle));
}

int idle_wait_ms(const struct idle *idle, int longest)
{
    return clock_poll_ms(end_of(idle), longest);
}
