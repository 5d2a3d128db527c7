/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_turn: whether a job may start now, and which is next.
 * Owns: nothing.
 * Threads: under the pool's lock.
 * May include: libc.
 */
#include "lib/base/budget.h"
#include "lib/base/clock.h"
#include "lib/base/pool_internal.h"

/* So long after its last job a caller counts as one of those that compete. */
#define CONTENDED_NS (5 * CLOCK_NS_PER_S)
/* Of a caller with several jobs, one within its share starts behind so many of others. */
#define OTHERS_FIRST 4

/* Its caller has not more than one at a time, but for what is taken down behind its answers. */
static bool is_single(const struct turns_caller *caller)
{
    return caller->queued <= 1 && caller->running == caller->ending;
}

/* Locked. Is there more than one caller lately? */
static bool is_contended(const struct pool *pool)
{
    return pool->changed_ns != 0 && clock_mono_ns() - pool->changed_ns < CONTENDED_NS;
}

/* Locked. Does one of those that compete come one at a time? */
static bool has_single(const struct pool *pool)
{
    return pool->single_ns != 0 && clock_mono_ns() - pool->single_ns < CONTENDED_NS;
}

/*
 * Locked. A caller with several jobs may start one more. Beside it a processor is left to those who
 * come one at a time: each job of theirs wakes up half a dozen times, and each time would stand in
 * line behind the starts and ends of others.
 */
static bool has_turn(const struct pool *pool, const struct turns_caller *caller)
{
    const struct pool_rules *rules = &pool->rules;
    const bool within_share = caller->prompt < rules->prompt;

    if (!has_single(pool)) {
        return within_share || pool->unsettled < rules->unsettled;
    }
    return pool->unsettled == 0 || pool->unsettled + 1 < rules->unsettled ||
           (within_share && pool->started - caller->served >= OTHERS_FIRST);
}

static bool serves(void *context, const struct turns_caller *caller)
{
    const struct pool *pool = context;
    const struct pool_rules *rules = &pool->rules;

    return (rules->per_caller == 0 || caller->running < rules->per_caller) &&
           (rules->unsettled == 0 || is_single(caller) || has_turn(pool, caller));
}

static bool starts(void *context, struct pool_job *job)
{
    const struct pool *pool = context;
    const struct pool_rules *rules = &pool->rules;

    if (job->claim == NULL || rules->budget == NULL ||
        budget_raise(rules->budget, job->claim, job->need)) {
        return true;
    }
    if (rules->short_of != NULL) {
        rules->short_of(rules->context);
    }
    return false;
}

/* Locked. A job of this caller starts. */
static void note_caller(struct pool *pool, struct turns_caller *caller)
{
    if (caller->id != pool->last_caller) {
        /* The first one of all competes with nobody. */
        pool->changed_ns = pool->started > 0 ? clock_mono_ns() : 0;
        pool->last_caller = caller->id;
    }
    caller->served = ++pool->started;
}

struct pool_job *pool_turn_take(struct pool *pool, struct pool_worker *worker)
{
    const struct turns_rule rule = {
        .serves = serves, .starts = starts, .per_group = pool->rules.per_group, .context = pool
    };
    struct pool_job *job = turns_take(&pool->turns, &rule, &worker->place);
    struct turns_caller *caller = worker->place.caller;
    bool single;

    if (job != NULL) {
        worker->prompt = caller->prompt < pool->rules.prompt;
        caller->prompt += worker->prompt ? 1 : 0;
        worker->settled = false;
        note_caller(pool, caller);
        single = caller->queued == 0 && caller->running - caller->ending == 1;
        if (single && is_contended(pool)) {
            pool->single_ns = clock_mono_ns();
        }
        job->favoured = single || (caller->queued == 0 && !is_contended(pool));
        job->worker = worker;
        pool->unsettled++;
        pool->running++;
    }
    return job;
}
