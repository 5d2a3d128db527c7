/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environments_make: building environments. Any thread but the event one.
 */
#ifndef KERND_SANDBOX_ENVIRONMENTS_MAKE_H
#define KERND_SANDBOX_ENVIRONMENTS_MAKE_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/sandbox/environments.h"
#include "lib/sandbox/limits.h"
#include "lib/sandbox/session.h"

struct execution;

struct environments_wanted {
    const char *name;     /* NULL: none */
    const char *engine;   /* NULL: the server's */
    const char *setup;    /* NULL: none; see setup.h */
    struct strv preload;  /* modules that must be there to be imported */
    struct limits limits; /* of the build; its deadline is that of a setup at least */
};

struct environments_made {
    struct environments_view view;
    struct execution *build; /* under way, a reference of the caller's; NULL: ready already */
    bool is_new;             /* this call began the build */
};

/*
 * The environment of this content: built, being built, or there already. A build runs the setup
 * with the network on, imports what is to be preloaded, and keeps what the setup left in its
 * directory. Those who ask while it goes on share it, and none of them ends it by leaving. One that
 * failed is built anew. 0, or -1 CONFLICT (the name is another's), BAD_VALUE, NOT_SUPPORTED_HERE,
 * LIMIT_EXCEEDS_MAXIMUM, STORE_FULL, and the errors of admission_submit.
 */
int environments_make(struct sandbox *sandbox, const struct session_actor *actor,
                      const struct environments_wanted *wanted, struct environments_made *ret,
                      struct err *err);

/*
 * A build ended, well or not (failure: why the server could not do it, code NONE: it could). Does
 * nothing for other executions. Before execution_finish: who is told, finds the outcome.
 */
void environments_make_settle(struct execution *execution, bool good, const struct err *failure);

#endif
