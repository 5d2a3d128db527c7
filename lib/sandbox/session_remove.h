/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_remove: how sessions end. For lib/sandbox alone; any thread but the event one.
 */
#ifndef KERND_SANDBOX_SESSION_REMOVE_H
#define KERND_SANDBOX_SESSION_REMOVE_H

#include "lib/base/err.h"

struct sandbox;

/*
 * Ends what runs in the session (fault `cancelled`), takes its files and its row away. The bytes of
 * a big workspace go later, by the janitor. 0 also when it was not there; -1 SESSION_BUSY, IO.
 */
int session_remove_now(struct sandbox *sandbox, const char *id, struct err *err);

struct cancel;

/*
 * One round of the janitor: sessions past their time become tombstones, old tombstones go. cancel
 * stops it between two of them.
 */
void session_remove_expired(struct sandbox *sandbox, struct cancel *cancel);

/* At start, before anybody can use it: a session that a stop left half made or half deleted. 0 or
 * -1. */
int session_remove_half_done(struct sandbox *sandbox, const char *id, struct err *err);

#endif
