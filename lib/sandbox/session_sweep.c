/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_sweep: what an earlier server left behind.
 * Owns: the names that were there at the start.
 * Threads: the one that opens the sandbox (begin), the janitor (run, free), any (clear, repair).
 * May include: lib/base, lib/store, lib/work, lib/sandbox.
 */
#include "lib/sandbox/session_sweep.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/base/text.h"
#include "lib/sandbox/place.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_remove.h"
#include "lib/sandbox/session_table.h"
#include "lib/sandbox/staging.h"
#include "lib/store/rows_session.h"
#include "lib/work/workspace.h"

struct session_sweep {
    struct sandbox *sandbox;
    struct strv found; /* names of owned workspaces that were there */
    struct strv rows;  /* names that rows own */
    size_t lost;       /* workspaces that were set aside */
    size_t emptied;    /* sessions that got a new one */
};

static void note_workspace(void *context, const char *name)
{
    struct session_sweep *sweep = context;

    if (text_starts_with(name, SESSION_SWEEP_WORKSPACE)) {
        strv_add(&sweep->found, name);
    } else if (text_starts_with(name, PLACE_FRESH_PREFIX) ||
               text_starts_with(name, STAGING_PREFIX "_")) {
        (void)workspace_discard(sweep->sandbox->workspaces, name, NULL);
    }
}

struct session_sweep *session_sweep_begin(struct sandbox *sandbox)
{
    struct session_sweep *sweep = alloc_zero(1, sizeof(*sweep));
    CLEANUP_STRV struct strv half_done = { 0 };

    sweep->sandbox = sandbox;
    (void)rows_session_half_done(sandbox->store, &half_done, NULL);
    for (size_t i = 0; i < half_done.count; i++) {
        (void)session_remove_half_done(sandbox, half_done.items[i], NULL);
    }
    (void)workspace_each(sandbox->workspaces, note_workspace, sweep, NULL);
    return sweep;
}

void session_sweep_free(struct session_sweep *sweep)
{
    if (sweep != NULL) {
        strv_done(&sweep->found);
        strv_done(&sweep->rows);
        free(sweep);
    }
}

/*
 * Is there a session that owns this workspace? 1, 0, or -1 when it can't be read now: then nothing
 * is done about it. With `making` held.
 */
static int is_owned(struct session_table *table, const char *name)
{
    struct rows_session row = { .options = NULL };
    struct err err = ERR_INIT;
    bool owned;

    if (rows_session_get(table->store, name + strlen(SESSION_SWEEP_WORKSPACE), &row, &err) < 0) {
        return err.code == ERR_SESSION_NOT_FOUND ? 0 : -1;
    }
    owned = row.owned && text_equal(row.workspace, name) &&
            !text_equal(row.state, session_state_text(SESSION_EXPIRED));
    rows_session_done(&row);
    return owned ? 1 : 0;
}

static int clear(struct session_table *table, const char *name, size_t *lost, struct err *err)
{
    int aside = workspace_set_aside(table->workspaces, name, err);

    if (aside > 0) {
        log_line(LOG_WARNING, "workspace_without_session", "name", name, "kept_in", WORKSPACE_LOST,
                 NULL);
        (*lost)++;
    }
    return aside < 0 ? -1 : 0;
}

int session_sweep_clear(struct session_table *table, const char *name, struct err *err)
{
    size_t lost = 0;

    return clear(table, name, &lost, err);
}

static int repair(struct session_table *table, const char *name, struct err *err)
{
    int root;

    if (is_owned(table, name) <= 0) {
        return err_set(err, ERR_SESSION_NOT_FOUND, 0, "the session is gone");
    }
    if (workspace_create(table->workspaces, name, &root, err) < 0) {
        return -1;
    }
    fd_close(root);
    log_line(LOG_WARNING, "session_without_workspace", "name", name, NULL);
    return 0;
}

int session_sweep_repair(struct session_table *table, const char *name, struct err *err)
{
    int result;

    (void)pthread_mutex_lock(&table->making);
    result = repair(table, name, err);
    (void)pthread_mutex_unlock(&table->making);
    return result;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct strv *texts)
{
    if (texts->count > 0) {
        qsort(texts->items, texts->count, sizeof(*texts->items), compare_texts);
    }
}

/* It may have become a session's since it was noted. */
static void sweep_one(struct session_sweep *sweep, const char *name)
{
    struct session_table *table = &sweep->sandbox->sessions;

    (void)pthread_mutex_lock(&table->making);
    if (is_owned(table, name) == 0) {
        (void)clear(table, name, &sweep->lost, NULL);
    }
    (void)pthread_mutex_unlock(&table->making);
}

/* Those that are there by now are made by somebody since: CONFLICT. */
static void repair_one(struct session_sweep *sweep, const char *name)
{
    if (session_sweep_repair(&sweep->sandbox->sessions, name, NULL) == 0) {
        sweep->emptied++;
    }
}

/* Both lists are sorted: one pass over the two. */
static void compare(struct session_sweep *sweep, struct cancel *cancel)
{
    size_t f = 0;
    size_t r = 0;

    while ((f < sweep->found.count || r < sweep->rows.count) && cancel_get(cancel) == CANCEL_NONE) {
        int order = f == sweep->found.count  ? 1
                    : r == sweep->rows.count ? -1
                                             : strcmp(sweep->found.items[f], sweep->rows.items[r]);

        if (order < 0) {
            sweep_one(sweep, sweep->found.items[f]);
        } else if (order > 0) {
            repair_one(sweep, sweep->rows.items[r]);
        }
        f += order <= 0 ? 1 : 0;
        r += order >= 0 ? 1 : 0;
    }
}

static void tell(const struct session_sweep *sweep)
{
    char lost[24];
    char emptied[24];

    if (sweep->lost + sweep->emptied == 0) {
        return;
    }
    (void)snprintf(lost, sizeof(lost), "%zu", sweep->lost);
    (void)snprintf(emptied, sizeof(emptied), "%zu", sweep->emptied);
    log_line(LOG_WARNING, "sessions_and_workspaces_differed", "without_session", lost,
             "without_workspace", emptied, NULL);
}

void session_sweep_run(struct session_sweep *sweep, struct cancel *cancel)
{
    if (rows_session_workspaces(sweep->sandbox->store, &sweep->rows, NULL) < 0) {
        return;
    }
    sort(&sweep->found);
    sort(&sweep->rows);
    compare(sweep, cancel);
    tell(sweep);
}
