/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: order waiting jobs fairly between callers, and between the groups of one.
 * Owns: the records of callers and groups; jobs are linked, not owned.
 * Threads: under the lock of whoever uses it.
 * May include: libc.
 */
#include "lib/base/turns.h"

#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/pool.h"

/* ---- records ---- */

static struct turns_caller *find_caller(const struct turns *turns, uint64_t id)
{
    struct turns_caller *caller = turns->callers;

    while (caller != NULL && caller->id != id) {
        caller = caller->next;
    }
    return caller;
}

static struct turns_group *find_group(const struct turns_caller *caller, uint64_t id)
{
    struct turns_group *group = caller == NULL ? NULL : caller->groups;

    while (group != NULL && group->id != id) {
        group = group->next;
    }
    return group;
}

static void unlink_caller(struct turns *turns, const struct turns_caller *caller)
{
    struct turns_caller **at = &turns->callers;

    while (*at != caller) {
        at = &(*at)->next;
    }
    *at = caller->next;
}

static void put_caller_last(struct turns *turns, struct turns_caller *caller)
{
    struct turns_caller **end = &turns->callers;

    while (*end != NULL) {
        end = &(*end)->next;
    }
    caller->next = NULL;
    *end = caller;
}

static void unlink_group(struct turns_caller *caller, const struct turns_group *group)
{
    struct turns_group **at = &caller->groups;

    while (*at != group) {
        at = &(*at)->next;
    }
    *at = group->next;
}

static void put_group_last(struct turns_caller *caller, struct turns_group *group)
{
    struct turns_group **end = &caller->groups;

    while (*end != NULL) {
        end = &(*end)->next;
    }
    group->next = NULL;
    *end = group;
}

/* Frees the records that nobody waits or runs in any more. */
static void forget_idle(struct turns *turns, struct turns_caller *caller, struct turns_group *group)
{
    if (group->first == NULL && group->running == 0) {
        unlink_group(caller, group);
        free(group);
    }
    if (caller->groups == NULL) {
        unlink_caller(turns, caller);
        free(caller);
    }
}

/* ---- jobs of a group ---- */

/* The job before this one, NULL when it is the first or not there (*ret_found tells). */
static struct pool_job *before_in_group(const struct turns_group *group, const struct pool_job *job,
                                        bool *ret_found)
{
    struct pool_job *before = NULL;
    struct pool_job *at = group->first;

    while (at != NULL && at != job) {
        before = at;
        at = at->next;
    }
    *ret_found = at != NULL;
    return before;
}

static void unlink_job(struct turns *turns, const struct turns_place *place, struct pool_job *job,
                       struct pool_job *before)
{
    if (before == NULL) {
        place->group->first = job->next;
    } else {
        before->next = job->next;
    }
    if (place->group->last == job) {
        place->group->last = before;
    }
    job->next = NULL;
    place->caller->queued--;
    turns->queued--;
}

void turns_put(struct turns *turns, struct pool_job *job)
{
    struct turns_caller *caller = find_caller(turns, job->caller);
    struct turns_group *group = find_group(caller, job->group);

    if (caller == NULL) {
        caller = alloc_zero(1, sizeof(*caller));
        caller->id = job->caller;
        put_caller_last(turns, caller);
    }
    if (group == NULL) {
        group = alloc_zero(1, sizeof(*group));
        group->id = job->group;
        put_group_last(caller, group);
    }
    job->next = NULL;
    if (group->first == NULL) {
        group->first = job;
    } else {
        group->last->next = job;
    }
    group->last = job;
    caller->queued++;
    turns->queued++;
}

bool turns_remove(struct turns *turns, struct pool_job *job)
{
    struct turns_caller *caller = find_caller(turns, job->caller);
    const struct turns_place place = { .caller = caller, .group = find_group(caller, job->group) };
    struct pool_job *before;
    bool found = false;

    if (place.group == NULL) {
        return false;
    }
    before = before_in_group(place.group, job, &found);
    if (found) {
        unlink_job(turns, &place, job, before);
        forget_idle(turns, place.caller, place.group);
    }
    return found;
}

struct pool_job *turns_pop(struct turns *turns)
{
    for (struct turns_caller *caller = turns->callers; caller != NULL; caller = caller->next) {
        for (struct turns_group *group = caller->groups; group != NULL; group = group->next) {
            struct pool_job *job = group->first;

            if (job != NULL) {
                (void)turns_remove(turns, job);
                return job;
            }
        }
    }
    return NULL;
}

/* ---- taking ---- */

static struct pool_job *take_of_group(struct turns *turns, const struct turns_rule *rule,
                                      const struct turns_place *place)
{
    struct pool_job *before = NULL;

    for (struct pool_job *job = place->group->first; job != NULL; job = job->next) {
        if (rule->starts(rule->context, job)) {
            unlink_job(turns, place, job, before);
            return job;
        }
        before = job;
    }
    return NULL;
}

static struct pool_job *take_of_caller(struct turns *turns, const struct turns_rule *rule,
                                       struct turns_place *place)
{
    struct pool_job *job = NULL;

    for (struct turns_group *group = place->caller->groups; job == NULL && group != NULL;
         group = group->next) {
        if (rule->per_group == 0 || group->running < rule->per_group) {
            place->group = group;
            job = take_of_group(turns, rule, place);
        }
    }
    return job;
}

struct pool_job *turns_take(struct turns *turns, const struct turns_rule *rule,
                            struct turns_place *ret_place)
{
    struct pool_job *job = NULL;

    for (struct turns_caller *caller = turns->callers; job == NULL && caller != NULL;
         caller = caller->next) {
        if (caller->queued > 0 && rule->serves(rule->context, caller)) {
            ret_place->caller = caller;
            job = take_of_caller(turns, rule, ret_place);
        }
    }
    if (job != NULL) {
        ret_place->caller->running++;
        ret_place->group->running++;
        unlink_group(ret_place->caller, ret_place->group);
        put_group_last(ret_place->caller, ret_place->group);
        unlink_caller(turns, ret_place->caller);
        put_caller_last(turns, ret_place->caller);
    }
    return job;
}

void turns_leave(struct turns *turns, const struct turns_place *place)
{
    place->caller->running--;
    place->group->running--;
    forget_idle(turns, place->caller, place->group);
}

/* ---- looks ---- */

size_t turns_queued_of(const struct turns *turns, uint64_t caller)
{
    const struct turns_caller *found = find_caller(turns, caller);

    return found == NULL ? 0 : found->queued;
}

size_t turns_running_of(const struct turns *turns, uint64_t caller)
{
    const struct turns_caller *found = find_caller(turns, caller);

    return found == NULL ? 0 : found->running;
}

size_t turns_callers(const struct turns *turns)
{
    size_t count = 0;

    for (const struct turns_caller *at = turns->callers; at != NULL; at = at->next) {
        count++;
    }
    return count;
}

static long place_in_group(const struct turns_group *group, const struct pool_job *job)
{
    long place = 0;

    for (const struct pool_job *at = group->first; at != job; at = at->next) {
        if (at == NULL) {
            return -1;
        }
        place++;
    }
    return place;
}

static long at_most(size_t count, long limit)
{
    return count < (size_t)limit ? (long)count : limit;
}

static long waiting_in(const struct turns_group *group, long limit)
{
    long count = 0;

    for (const struct pool_job *at = group->first; at != NULL && count < limit; at = at->next) {
        count++;
    }
    return count;
}

/*
 * In the round in which the job runs, each earlier group has had one turn more than the job's own
 * had before it, each later one as many. The same holds for callers.
 */
static long place_in_caller(const struct turns_caller *caller, const struct turns_group *own,
                            long place)
{
    long position = place;
    bool earlier = true;

    for (const struct turns_group *group = caller->groups; group != NULL; group = group->next) {
        if (group == own) {
            earlier = false;
        } else {
            position += waiting_in(group, earlier ? place + 1 : place);
        }
    }
    return position;
}

long turns_position(const struct turns *turns, const struct pool_job *job)
{
    const struct turns_caller *own = find_caller(turns, job->caller);
    const struct turns_group *group = find_group(own, job->group);
    long place = group == NULL ? -1 : place_in_group(group, job);
    long position;
    bool earlier = true;

    if (place < 0) {
        return -1;
    }
    place = place_in_caller(own, group, place);
    position = place;
    for (const struct turns_caller *caller = turns->callers; caller != NULL;
         caller = caller->next) {
        if (caller == own) {
            earlier = false;
        } else {
            position += at_most(caller->queued, earlier ? place + 1 : place);
        }
    }
    return position;
}
