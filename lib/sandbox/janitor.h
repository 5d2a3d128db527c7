/* SPDX-License-Identifier: Apache-2.0 */
/*
 * janitor: one thread that does what nobody waits for: expired sessions, discarded files, old
 * records. For lib/sandbox alone.
 */
#ifndef KERND_SANDBOX_JANITOR_H
#define KERND_SANDBOX_JANITOR_H

#include "lib/base/err.h"

struct janitor;
struct sandbox;

/* Starts the thread. NULL with err. */
struct janitor *janitor_new(struct sandbox *sandbox, struct err *err);

/* A round at once instead of at the next second. Any thread. */
void janitor_wake(struct janitor *janitor);

/* Ends the thread, between two deletions; NULL is fine. */
void janitor_free(struct janitor *janitor);

#endif
