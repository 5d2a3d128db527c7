/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_freeze: a held session to oneself, for as long as its files are exchanged. For
 * lib/sandbox alone; any thread but the event one.
 *
 * Whoever wants to hold the session meanwhile waits for the end, so it must be near: some renames.
 */
#ifndef KERND_SANDBOX_SESSION_FREEZE_H
#define KERND_SANDBOX_SESSION_FREEZE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

struct session_entry;

/*
 * Nothing may run in the session. alone: nobody else may hold it; waits for that until the deadline
 * without keeping others out. 0, or -1 SESSION_BUSY.
 */
int session_freeze_begin(struct session_entry *entry, bool alone, int64_t deadline,
                         struct err *err);

/* root: the workspace from now on, the entry's; -1: it is the same. */
void session_freeze_end(struct session_entry *entry, int root);

#endif
