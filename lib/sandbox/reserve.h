/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve: what is kept ahead of calls gives way to those that wait for memory. For lib/sandbox.
 *
 * Spares go first, all of them: each stands for one call, and is made again in no time. Then
 * templates, as few as do, and none where none would do (templates_give_way).
 */
#ifndef KERND_SANDBOX_RESERVE_H
#define KERND_SANDBOX_RESERVE_H

#include "lib/base/err.h"

struct reserve;
struct sandbox;

/* Makes its thread. The sandbox must have its spares and templates. NULL with err. */
struct reserve *reserve_new(struct sandbox *sandbox, struct err *err);

/* Nobody may ask any more. NULL is fine. */
void reserve_free(struct reserve *reserve);

/*
 * Something waits for memory: what gives way does so soon. context: the reserve. Any thread, under
 * any lock: it only sends a job.
 */
void reserve_ask(void *context);

#endif
