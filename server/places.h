/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places: which directories the daemon uses when it isn't told, from the environment and from where
 * its program lies. The only reader of the environment. Main thread, before any other starts.
 */
#ifndef KERND_SERVER_PLACES_H
#define KERND_SERVER_PLACES_H

#include <sys/types.h>

#include "lib/base/err.h"
#include "server/config.h"

/*
 * Fills the state, runtime and library directories that config leaves open, and makes given ones
 * absolute. account: the user whom root's daemon becomes ("nobody": /var/lib/kernd and /run/kernd;
 * others: with "-<account>" appended), NULL when the daemon keeps its user (XDG base directories).
 * Makes nothing. 0, or -1 with err.
 */
int places_resolve(struct config *config, const char *account, struct err *err);

/*
 * Leaves only what the daemon and the launchers need in the environment, with HOME, USER and
 * LOGNAME of the account it runs as: what root had set is no business of an unprivileged process.
 */
void places_clean_environment(const char *account, const char *home);

/* A variable of the environment, NULL when unset or empty. Not kept by the caller. */
const char *places_environment(const char *name);

/* Takes a variable out of the environment. */
void places_forget(const char *name);

#endif
