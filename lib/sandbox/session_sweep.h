/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_sweep: rows and workspaces that an earlier server left, brought together again. For
 * lib/sandbox alone.
 *
 * What must be gone before anybody asks goes at the start: sessions half made or half deleted,
 * workspaces of calls, half-unpacked archives. Comparing all rows with all directories takes time
 * that grows with their number, and waits until the server serves; a session that is used before
 * finds its directory missing by itself (session_sweep_repair).
 */
#ifndef KERND_SANDBOX_SESSION_SWEEP_H
#define KERND_SANDBOX_SESSION_SWEEP_H

#include "lib/base/cancel.h"
#include "lib/base/err.h"

struct sandbox;
struct session_sweep;
struct session_table;

/* Names of owned workspaces are this and the session's id, so that they meet no others. */
#define SESSION_SWEEP_WORKSPACE "session-"

/*
 * Before the server serves: removes what nobody may see, and notes what is there. Never NULL; the
 * caller frees it (session_sweep_free) once the janitor is gone.
 */
struct session_sweep *session_sweep_begin(struct sandbox *sandbox);

/*
 * Compares what was noted with the rows, while others use both. Files without a session are set
 * aside (workspace.h), sessions without a directory get an empty one, and the log tells. cancel
 * stops it between two of them. Janitor, once.
 */
void session_sweep_run(struct session_sweep *sweep, struct cancel *cancel);
void session_sweep_free(struct session_sweep *sweep);

/*
 * With the table's `making` held, and no row of that name: whatever lies where a new workspace is
 * to be made was left by an earlier server. 0 when the name is free now, or -1 IO.
 */
int session_sweep_clear(struct session_table *table, const char *name, struct err *err);

/* A workspace is not there: an empty one, if there still is the session. 0, or -1 as
 * workspace_create. */
int session_sweep_repair(struct session_table *table, const char *name, struct err *err);

#endif
