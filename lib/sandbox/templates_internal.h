/* SPDX-License-Identifier: Apache-2.0 */
/*
 * templates_internal: the templates and each of them, for templates.c and templates_boot.c alone.
 */
#ifndef KERND_SANDBOX_TEMPLATES_INTERNAL_H
#define KERND_SANDBOX_TEMPLATES_INTERNAL_H

#include <pthread.h>

#include "lib/base/budget.h"
#include "lib/base/cancel.h"
#include "lib/base/pool.h"
#include "lib/base/strv.h"
#include "lib/sandbox/templates.h"
#include "lib/sandbox/templates_kind.h"

#define TEMPLATES_FORKS_MAX 1000

enum template_state {
    TEMPLATE_WANTED, /* by one call, which says little of what follows: there is nothing to it */
    TEMPLATE_BOOTING,
    TEMPLATE_UP,
    TEMPLATE_STALE,  /* takes orders until its successor is up */
    TEMPLATE_RETIRED /* takes none */
};

struct template
{
    struct pool_job job;
    struct templates *templates;
    enum template_state state;
    struct templates_kind kind;
    struct strv env; /* what it was booted with */
    struct budget_claim memory;
    struct box *box;
    struct cell_booted *booted;
    size_t users; /* threads that fork of it now */
    uint64_t forks;
    int64_t born_ns;
    int64_t used_ns;
    struct template *next;
};

struct templates {
    struct sandbox *sandbox;
    bool enabled;
    struct pool *lane;
    struct cancel cancel;
    pthread_mutex_t lock; /* guards what follows, and the fields of each template */
    struct template *first;
    bool closed;
    unsigned failures;
    int64_t failed_ns;
    uint64_t forks;
    char why[160];
};

/* What these do is done under the lock. */

/*
 * Boots one of this kind, if there is room, or one that is unused can make way, and the last ones
 * did not fail. Of a private kind (templates_kind.h) only for the second call that comes.
 */
void templates_boot(struct templates *templates, const struct templates_kind *kind);

/*
 * To be called at each fork: once it made its boxes, or is old, a successor is ordered. It takes
 * orders until that is up, and another is ordered where one could not be had (memory was short) or
 * failed.
 */
void templates_boot_renew(struct template *template);

/* It takes no orders any more. Its boxes go on; it ends when they have, see templates_age. */
void templates_boot_retire(struct template *template);

/* Tells one that is retired, once nobody is about to give it an order: the order would be lost. */
void templates_boot_let_go(struct template *template);

/* Frees one that has no box (any more). Needs no lock. */
void templates_boot_free(struct template *template);

void templates_boot_failed(struct templates *templates, const char *why);

#endif
