/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live: the executions that are queued or running. For lib/sandbox alone; any thread.
 *
 * The list holds a reference of each. Lock order: live, then execution.
 */
#ifndef KERND_SANDBOX_LIVE_H
#define KERND_SANDBOX_LIVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/cancel.h"

struct execution;

struct live {
    pthread_mutex_t lock;
    pthread_cond_t empty;
    struct execution *first;
};

void live_init(struct live *live);
void live_done(struct live *live);

/* Takes a reference. */
void live_add(struct live *live, struct execution *execution);
/* Gives it back. */
void live_remove(struct live *live, struct execution *execution);

/* One more reference of the live execution of that id, or NULL. */
struct execution *live_find(struct live *live, const char *id);

/*
 * One more reference of each of those in a session (NULL: of all), newest first. An array for the
 * caller, who gives the references back and frees it; NULL when there is none.
 */
struct execution **live_collect(struct live *live, const char *session_id, size_t *ret_count);

void live_cancel_all(struct live *live, enum cancel_reason reason);
void live_cancel_session(struct live *live, const char *session_id);

/* True when none is left at the deadline. */
bool live_wait_empty(struct live *live, int64_t deadline);

#endif
