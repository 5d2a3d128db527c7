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
/* What one has once it is up, with an interpreter and some modules. */
#define TEMPLATES_BYTES (UINT64_C(48) << 20)
/* Of the memory of all boxes, so much is for them at most. */
#define TEMPLATES_SHARE 8

enum template_state {
    TEMPLATE_BOOTING,
    TEMPLATE_UP,
    TEMPLATE_STALE,  /* takes orders until its successor is up */
    TEMPLATE_RETIRED /* takes none */
};

struct template
{
    struct pool_job job;
    struct cancel cancel; /* of its boot */
    bool sent;            /* to the lane, see templates_start */
    struct templates *templates;
    enum template_state state;
    struct templates_kind kind;
    struct strv env; /* what it was booted with */
    struct budget_claim memory;
    struct box *box;
    struct cell_booted *booted;
    size_t users; /* threads that fork of it now */
    uint64_t forks;
    int64_t born_ns; /* when it was ordered; of one that is up, when it came up */
    int64_t used_ns;
    struct template *next;
};

/* Of a kind without a template. */
struct templates_note {
    struct templates_kind kind;
    unsigned failures; /* in a row; 0: one was wanted, by a call that may not be repeated */
    int64_t failed_ns;
    int64_t used_ns;
    struct templates_note *next;
};

struct templates {
    struct sandbox *sandbox;
    bool enabled;
    size_t max; /* that take orders or are about to */
    struct pool *lane;
    pthread_mutex_t lock; /* guards what follows, and the fields of each template */
    struct template *first;
    struct templates_note *notes;
    bool closed;
    int64_t yielded_ns; /* calls waited for memory then; 0: never */
    uint64_t forks;
    char why[160];
};

/* What these do is done under the lock. */

/*
 * Orders one of this kind, if there is room, or one that is unused can make way, and the last ones
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

/* As templates_boot_retire, also of one that is not up yet. */
void templates_boot_abandon(struct template *template);

/* Tells one that is retired, once nobody is about to give it an order: the order would be lost. */
void templates_boot_let_go(struct template *template);

/* Frees one that has no box (any more). Needs no lock. */
void templates_boot_free(struct template *template);

/* Not again soon: of one kind, since what one imports says nothing of others. */
void templates_boot_failed(struct templates *templates, const struct templates_kind *kind,
                           const char *why);

/* NULL: there is none. */
struct templates_note *templates_note_find(const struct templates *templates,
                                           const struct templates_kind *kind);
/* The one there is, used now, or a new one; of many the one unused for longest is forgotten. */
struct templates_note *templates_note_make(struct templates *templates,
                                           const struct templates_kind *kind);
void templates_note_drop(struct templates *templates, const struct templates_kind *kind);
/* Forgets those that were not used since. */
void templates_note_age(struct templates *templates, int64_t before_ns);

#endif
