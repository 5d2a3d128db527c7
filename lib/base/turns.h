/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns: waiting jobs of many callers, and whose turn it is.
 *
 * Callers are served in turn (round robin); within a caller its groups (sessions) are, within a
 * group jobs go first in first out, but for those that can't start yet. For lib/base/pool.c, under
 * its lock.
 */
#ifndef KERND_BASE_TURNS_H
#define KERND_BASE_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool_job;

/* Exists while it has jobs that wait or run. */
struct turns_group {
    uint64_t id;
    size_t running;
    struct pool_job *first;
    struct pool_job *last;
    struct turns_group *next;
};

struct turns_caller {
    uint64_t id;
    size_t running;
    size_t prompt; /* of these, within its share */
    size_t ending; /* of these, through with all but their last part */
    size_t queued;
    uint64_t served;            /* which job of all its last one was, counted by the pool */
    struct turns_group *groups; /* in the order in which they are served next */
    struct turns_caller *next;
};

struct turns {
    struct turns_caller *callers; /* likewise */
    size_t queued;
};

/* Who may be served now. */
struct turns_rule {
    bool (*serves)(void *context, const struct turns_caller *caller);
    bool (*starts)(void *context, struct pool_job *job); /* asked last: true takes it */
    size_t per_group; /* a group with so many running waits; 0: as many as there are */
    void *context;
};

/* Where a job was taken from, to be given back by turns_leave. */
struct turns_place {
    struct turns_caller *caller;
    struct turns_group *group;
};

void turns_put(struct turns *turns, struct pool_job *job);

/*
 * The next job that the rule lets start, NULL: none. It counts as running from here; its group goes
 * to the back of its caller, its caller to the back of all.
 */
struct pool_job *turns_take(struct turns *turns, const struct turns_rule *rule,
                            struct turns_place *ret_place);

/* A job that was taken is done. */
void turns_leave(struct turns *turns, const struct turns_place *place);

/* Takes one out that waits; false: it does not. */
bool turns_remove(struct turns *turns, struct pool_job *job);

/* Any that waits, for an end of all; NULL: none does. */
struct pool_job *turns_pop(struct turns *turns);

size_t turns_queued_of(const struct turns *turns, uint64_t caller);
size_t turns_running_of(const struct turns *turns, uint64_t caller);

/* How many have jobs that wait or run. */
size_t turns_callers(const struct turns *turns);

/* How many jobs start before this one if all may start; -1: it does not wait. */
long turns_position(const struct turns *turns, const struct pool_job *job);

#endif
