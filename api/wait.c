/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: let three parties race for the answer of a call: the execution, the clock, the client.
 * Owns: the link between them.
 * Threads: any; each party may come on a thread of its own, at the same time.
 * May include: lib/base, lib/sandbox.
 */
#include "api/wait.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "api/resource.h"
#include "lib/base/alarm.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"

/*
 * Each party holds a reference until it was called or withdrawn. The first to claim the call
 * answers it, after it has withdrawn the others; one that comes later only lets go.
 */
struct waiting {
    struct wait_plan plan;
    struct api_call *call; /* of whoever has claimed it */
    struct alarm *alarm;
    atomic_int references;
    atomic_bool claimed;
    struct execution_waiter waiter;
    struct alarm_entry entry;
    struct api_hook hook;
};

/* Gives back that many references at once: nothing is touched behind the last. */
static void let_go(struct waiting *waiting, int references)
{
    if (atomic_fetch_sub(&waiting->references, references) == references) {
        execution_unref(waiting->plan.execution);
        free(waiting);
    }
}

static bool claim(struct waiting *waiting)
{
    return !atomic_exchange(&waiting->claimed, true);
}

/* ---- withdrawing the others: 1 when one's reference is the withdrawer's to give back ---- */

static int withdraw_client(struct waiting *waiting)
{
    return api_call_unwatch(waiting->call) != NULL;
}

static int withdraw_clock(struct waiting *waiting)
{
    return waiting->plan.deadline != CLOCK_NEVER && alarm_clear(waiting->alarm, &waiting->entry);
}

static int withdraw_execution(struct waiting *waiting)
{
    return execution_forget(waiting->plan.execution, &waiting->waiter);
}

static void answer(struct waiting *waiting, enum wait_end end)
{
    waiting->plan.answer(waiting->call, waiting->plan.execution, end);
}

/* ---- the parties ---- */

static void execution_done(struct execution_waiter *waiter)
{
    struct waiting *waiting = CONTAINER_OF(waiter, struct waiting, waiter);
    int references = 1;

    if (claim(waiting)) {
        references += withdraw_client(waiting);
        references += withdraw_clock(waiting);
        answer(waiting, WAIT_DONE);
    }
    let_go(waiting, references);
}

static void time_passed(struct alarm_entry *entry)
{
    struct waiting *waiting = CONTAINER_OF(entry, struct waiting, entry);
    int references = 1;

    if (claim(waiting)) {
        references += withdraw_client(waiting);
        references += withdraw_execution(waiting);
        answer(waiting, WAIT_LATE);
    }
    let_go(waiting, references);
}

/* Whoever has claimed the call is the only one to finish it: so it may be touched here. */
static void client_gone(struct api_hook *hook, enum cancel_reason reason)
{
    struct waiting *waiting = CONTAINER_OF(hook, struct waiting, hook);
    int references = 1;

    if (waiting->plan.cancels) {
        /* Ends it, and so answers the call soon; perhaps within this call. */
        execution_cancel(waiting->plan.execution, reason);
    } else if (claim(waiting)) {
        references += withdraw_clock(waiting);
        references += withdraw_execution(waiting);
        answer(waiting, WAIT_ALONE);
    }
    let_go(waiting, references);
}

/* A client that left early found neither the clock nor the execution to withdraw. */
static int withdraw_late(struct waiting *waiting)
{
    return atomic_load(&waiting->claimed) ? withdraw_clock(waiting) + withdraw_execution(waiting)
                                          : 0;
}

void wait_begin(struct api_call *call, const struct wait_plan *plan)
{
    struct waiting *waiting = alloc_zero(1, sizeof(*waiting));
    const bool timed = plan->deadline != CLOCK_NEVER;
    struct execution *execution = plan->execution;
    struct alarm *alarm = call->api->alarm;

    waiting->plan = *plan;
    waiting->call = call;
    waiting->alarm = alarm;
    waiting->waiter.done = execution_done;
    waiting->entry.ring = time_passed;
    waiting->hook.fire = client_gone;
    atomic_init(&waiting->claimed, false);
    /* One more for this function: each party may end it all at once. */
    atomic_init(&waiting->references, timed ? 4 : 3);
    api_call_watch(call, &waiting->hook);
    if (timed) {
        alarm_set(alarm, &waiting->entry, plan->deadline);
    }
    execution_wait(execution, &waiting->waiter);
    let_go(waiting, 1 + withdraw_late(waiting));
}
