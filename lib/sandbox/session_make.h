/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_make: how sessions come to be. For lib/sandbox alone; any thread but the event one.
 */
#ifndef KERND_SANDBOX_SESSION_MAKE_H
#define KERND_SANDBOX_SESSION_MAKE_H

#include "lib/sandbox/session.h"

struct session_entry;

struct session_make_options {
    struct options *options; /* resolved in place; they stay the caller's */
    bool unfinished;         /* CREATING until something more is done, else READY at once */
};

/* As session_create, but runs no setup. */
int session_make_new(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                     const struct session_make_options *wanted, struct session_created *ret,
                     struct err *err);

/*
 * The files of a new session's snapshot, and READY unless its setup is still to come. -1
 * SNAPSHOT_NOT_FOUND, WORKSPACE_FULL, CANCELLED ...; then the session is gone again.
 */
int session_make_fill(struct sandbox *sandbox, const struct session_actor *actor,
                      struct session_view *view, struct cancel *cancel, struct err *err);

/* As session_fork; `from` is held. */
int session_make_copy(struct sandbox *sandbox, const struct session_actor *actor,
                      struct session_entry *from, const struct session_fork_wanted *wanted,
                      struct session_view *ret_view, struct err *err);

struct execution;

/*
 * A setup ended. If it is that of a session that is being made, the session is ready now, or (not
 * good) it is gone with all its files before anybody is told. Before execution_finish.
 */
void session_make_settle(struct execution *execution, bool good);

#endif
