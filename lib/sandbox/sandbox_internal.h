/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_internal: the body of a sandbox, for lib/sandbox alone.
 *
 * Immutable after sandbox_open but for what is under the lock.
 */
#ifndef KERND_SANDBOX_SANDBOX_INTERNAL_H
#define KERND_SANDBOX_SANDBOX_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/budget.h"
#include "lib/base/pool.h"
#include "lib/box/boxes.h"
#include "lib/sandbox/kernels_table.h"
#include "lib/sandbox/live.h"
#include "lib/sandbox/sandbox.h"
#include "lib/sandbox/session_table.h"
#include "lib/sandbox/tally.h"
#include "lib/store/store.h"
#include "lib/work/hostdir.h"

struct blanks;
struct environments;
struct janitor;
struct reserve;
struct session_sweep;
struct snapshots;
struct tokens;

#define SANDBOX_VERSION_SIZE 64

struct sandbox {
    char *workspaces_path; /* parent of all owned workspaces */
    int workspaces;        /* the same, open as a directory */
    struct blanks *blanks; /* of calls without a workspace */
    struct boxes *boxes;
    struct budget *budget; /* memory of all boxes */
    struct pool *pool;     /* the run lane */
    struct store *store;
    struct journal *journal;
    struct alarm *alarm;     /* deadlines of the queue */
    struct pool *background; /* the lane of detached executions */
    struct pool *files;      /* the lane of copies and archives */
    struct snapshots *snapshots;
    struct tokens *tokens;
    struct environments *environments;
    pthread_mutex_t naming; /* ids that callers chose are taken under it; before the store's */
    sandbox_render *render;
    struct session_sweep *sweep; /* the janitor's, once it is there */
    struct session_table sessions;
    struct hostdir_rules host_rules;
    char *home;            /* resolved, behind host_rules */
    struct strv roots;     /* the same */
    char *own_resolved[3]; /* the same */
    struct janitor *janitor;
    struct spares *spares;
    struct templates *templates;
    struct reserve *reserve;
    struct live live;
    struct kernels_table kernels;
    struct capacity capacity;
    bool image_pull; /* callers may have images fetched */
    struct limits maxima;
    struct limits defaults;
    atomic_ullong executions_total;
    struct steps_totals steps;
    struct tally tally;

    pthread_mutex_t lock; /* closing, language versions */
    bool closing;
    bool language_known[RUN_LANGUAGE_MAX];
    char language_version[RUN_LANGUAGE_MAX][SANDBOX_VERSION_SIZE];
};

/* Is there room for new work where the state is kept? 0, or -1 STORE_FULL, NOT_READY, IO. */
int sandbox_space(struct sandbox *sandbox, struct err *err);

/* Has the end begun? Nothing new is started then. */
bool sandbox_closing(struct sandbox *sandbox);

#endif
