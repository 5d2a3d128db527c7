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

static bool is_of_late(int64_t since_ns)
{
    return since_ns != 0 && clock_mono_ns() - since_ns < CONTENDED_NS;
}

/* Locked. Is there more than one caller lately? */
static bool is_contended(const struct pool *pool)
{
    return is_of_late(pool->changed_ns);
}

/* Locked. Does one of those that compete with this caller come one at a time? */
static bool has_single_beside(const struct pool *pool, const struct turns_caller *caller)
{
    for (size_t i = 0; i < POOL_SINGLES; i++) {
        if (pool->singles[i].caller != caller->id && is_of_late(pool->singles[i].began_ns)) {
            return true;
        }
    }
    return false;
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

    if (!has_single_beside(pool, caller)) {
        return within_share || pool->unsettled < rules->unsettled;
    }
    return pool->unsettled == 0 || pool->unsettled + 1 < rules->unsettled ||
           (within_share && pool->started - caller->served >= OTHERS_FIRST);
}

static bool may_start(const struct pool *pool, const struct turns_caller *caller)
{
    const struct pool_rules *rules = &pool->rules;

    return (rules->per_caller == 0 || caller->running < rules->per_caller) &&
           (rules->unsettled == 0 || is_single(caller) || has_turn(pool, caller));
}

static bool serves(void *context, const struct turns_caller *caller)
{
    return may_start(context, caller);
}

bool pool_turn_is(const struct pool *pool)
{
    for (const struct turns_caller *caller = pool->turns.callers; caller != NULL;
         caller = caller->next) {
        if (caller->queued > 0 && may_start(pool, caller)) {
            return true;
        }
    }
    return false;
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

/* Locked. The place of this caller, else the one that was noted longest ago. */
static struct pool_single *place_of_single(struct pool *pool, uint64_t caller)
{
    struct pool_single *oldest = &pool->singles[0];

    for (size_t i = 0; i < POOL_SINGLES; i++) {
        struct pool_single *at = &pool->singles[i];

        if (at->began_ns != 0 && at->caller == caller) {
            return at;
        }
        oldest = at->began_ns < oldest->began_ns ? at : oldest;
    }
    return oldest;
}

/*
 * Locked. A job of this caller starts. True: as its only one. Whose next job starts beside that or
 * before others that wait does not come one at a time: the first of a flood is alone, too.
 */
static bool note_single(struct pool *pool, const struct turns_caller *caller)
{
    const bool single = caller->queued == 0 && caller->running - caller->ending == 1;
    struct pool_single *place = place_of_single(pool, caller->id);

    if (single && is_contended(pool)) {
        *place = (struct pool_single){ .caller = caller->id, .began_ns = clock_mono_ns() };
    } else if (!single && place->caller == caller->id) {
        place->began_ns = 0;
    }
    return single;
}

struct pool_job *pool_turn_take(struct pool *pool, struct pool_worker *worker)
{
    const struct turns_rule rule = {
        .serves = serves, .starts = starts, .per_group = pool->rules.per_group, .context = pool
    };
    struct pool_job *job =
        pool->running < pool->seats ? turns_take(&pool->turns, &rule, &worker->place) : NULL;
    struct turns_caller *caller = worker->place.caller;
    bool single;

    if (job != NULL) {
        worker->prompt = caller->prompt < pool->rules.prompt;
        caller->prompt += worker->prompt ? 1 : 0;
        worker->settled = false;
        note_caller(pool, caller);
        single = note_single(pool, caller);
        job->favoured = single || (caller->queued == 0 && !is_contended(pool));
        job->worker = worker;
        pool->unsettled++;
        pool->running++;
    }
    return job;
}
