/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_make: how sessions come to be. For lib/sandbox alone; any thread but the event one.
 */
#ifndef KERND_SANDBOX_SESSION_MAKE_H
#define KERND_SANDBOX_SESSION_MAKE_H

#include "lib/sandbox/session.h"

struct session_entry;

/* As session_create, but options are only resolved in place and stay the caller's. */
int session_make_new(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                     struct options *options, struct session_created *ret, struct err *err);

/* As session_fork over a held session. */
int session_make_copy(struct sandbox *sandbox, const struct session_actor *actor,
                      struct session_entry *from, const char *new_id, struct session_view *ret_view,
                      struct err *err);

/* The setup of a session that is being made succeeded: it is ready. 0 or -1. */
int session_make_ready(struct sandbox *sandbox, struct session_entry *entry, struct err *err);

#endif
