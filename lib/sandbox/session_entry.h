/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_entry: a session in memory, with its workspace open. For lib/sandbox/session_table.c.
 */
#ifndef KERND_SANDBOX_SESSION_ENTRY_H
#define KERND_SANDBOX_SESSION_ENTRY_H

#include "lib/base/err.h"
#include "lib/sandbox/session_table.h"

/*
 * A fresh entry, in no table yet. NULL with SESSION_NOT_FOUND (also when the actor may not see it),
 * SESSION_EXPIRED, CONFLICT (a caller's workspace directory is gone), IO.
 */
struct session_entry *session_entry_load(struct session_table *table,
                                         const struct session_actor *actor, const char *id,
                                         struct err *err);

/* May its files be changed? 0, or -1 FORBIDDEN. */
int session_entry_writable(const struct session_entry *entry, struct err *err);

/* NULL is fine. */
void session_entry_free(struct session_entry *entry);

#endif
