/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errand: has a function run on a pool's thread and waits for it. For threads that may not do the
 * thing themselves (see confine.h).
 */
#ifndef KERND_BOX_ERRAND_H
#define KERND_BOX_ERRAND_H

#include "lib/base/err.h"
#include "lib/base/pool.h"

/*
 * Blocks until run(context) has returned; not to be called from the pool's own threads. 0, or -1
 * SHUTTING_DOWN: it did not run.
 */
int errand_run(struct pool *pool, void (*run)(void *context), void *context, struct err *err);

#endif
