/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_life: how the interpreter of a kernel comes, sleeps, dies and goes. For lib/sandbox; the
 * kernel's owner (warm.h).
 */
#ifndef KERND_SANDBOX_WARM_LIFE_H
#define KERND_SANDBOX_WARM_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

struct warm;

/*
 * Opens a fresh interpreter, after the old one's end, and tells the waiters. A run thread. False:
 * it could not be opened for the first time, so the kernel is closed and nobody's.
 */
bool warm_life_open(struct warm *warm);

/* Ends the interpreter, gives everything back, leaves the table. failure: for the waiters; NULL: it
 * was removed. */
void warm_life_close(struct warm *warm, const struct err *failure);

/* The interpreter is gone: what is left is a kernel that says why. */
void warm_life_die(struct warm *warm, const char *reason);

/* Wakes it for a cell. 0, or -1 SESSION_NOT_FOUND ... when its session went meanwhile. */
int warm_life_wake(struct warm *warm, struct err *err);

/* The owner's look at it behind a cell's answer: has it died, or outgrown its memory? */
void warm_life_check(struct warm *warm);

/* What the passing of time does to an idle one. */
void warm_life_tick(struct warm *warm, int64_t now_ns);

#endif
