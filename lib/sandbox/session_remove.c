/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_remove: deletion, expiry and repair of sessions.
 * Owns: nothing that lasts.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/session_remove.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cancel.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/sandbox/janitor.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_table.h"
#include "lib/sandbox/spares.h"
#include "lib/store/rows_session.h"
#include "lib/work/workspace.h"

/* A cancelled box is gone within its stop ladder. */
#define WAIT_S 20
/* Those that run are past their time, too, and come first: far more than can run. */
#define EXPIRED_AT_ONCE 10000
/* So long a GET still says that a session expired, rather than that it never was. */
#define TOMBSTONE_MS (INT64_C(24) * 3600 * 1000)

static int discard_files(struct sandbox *sandbox, const struct rows_session *row, struct err *err)
{
    return row->owned ? workspace_discard(sandbox->workspaces, row->workspace, err) : 0;
}

static void set_state(struct rows_session *row, enum session_state state)
{
    (void)snprintf(row->state, sizeof(row->state), "%s", session_state_text(state));
}

/* The row stays as a tombstone, without files, until its own time is over. */
static int bury(struct sandbox *sandbox, struct rows_session *row, struct err *err)
{
    if (discard_files(sandbox, row, err) < 0) {
        return -1;
    }
    set_state(row, SESSION_EXPIRED);
    row->expires_ms = clock_wall_ms() + TOMBSTONE_MS;
    return rows_session_update(sandbox->store, row, err);
}

/* Where the disk is full, the session's own files may be what fills it: they go first. */
static int delete_row(struct sandbox *sandbox, const char *id, struct err *err)
{
    struct err first = ERR_INIT;
    struct remove_left left;

    if (rows_session_delete(sandbox->store, id, &first) == 0) {
        return 0;
    }
    if (first.code == ERR_STORE_FULL) {
        (void)workspace_purge(sandbox->workspaces, NULL, &left);
    }
    return rows_session_delete(sandbox->store, id, err);
}

/*
 * The row says first that its files go: a server that is killed in between deletes the rest at its
 * next start, rather than to give back an empty session. A full disk must not hinder this.
 */
static int delete_all(struct sandbox *sandbox, struct rows_session *row, struct err *err)
{
    struct rows_session before = *row;

    set_state(row, SESSION_DELETING);
    if (row->owned) {
        (void)rows_session_update(sandbox->store, row, NULL);
    }
    if (discard_files(sandbox, row, err) < 0) {
        (void)rows_session_update(sandbox->store, &before, NULL);
        return -1;
    }
    return delete_row(sandbox, row->id, err);
}

static int take_row(struct sandbox *sandbox, const char *id, bool tombstone, struct err *err)
{
    struct rows_session row = { .options = NULL };
    int result;

    if (rows_session_get(sandbox->store, id, &row, NULL) < 0) {
        return 0;
    }
    if (tombstone && row.expires_ms > clock_wall_ms()) {
        result = 1; /* it was used while we looked */
    } else if (tombstone && !text_equal(row.state, session_state_text(SESSION_EXPIRED))) {
        result = bury(sandbox, &row, err);
    } else {
        result = delete_all(sandbox, &row, err);
    }
    rows_session_done(&row);
    return result;
}

/*
 * With the door closed and no hold left. 0, 1 when it is not its time after all, or -1. What is
 * made or repaired meanwhile must not find the row without its files.
 */
static int take_away(struct sandbox *sandbox, const char *id, bool tombstone, struct err *err)
{
    int result;

    (void)pthread_mutex_lock(&sandbox->sessions.making);
    result = take_row(sandbox, id, tombstone, err);
    (void)pthread_mutex_unlock(&sandbox->sessions.making);
    return result;
}

int session_remove_half_done(struct sandbox *sandbox, const char *id, struct err *err)
{
    return take_away(sandbox, id, false, err);
}

static int remove_closed(struct sandbox *sandbox, const char *id, bool tombstone, struct err *err)
{
    int result;

    live_cancel_session(&sandbox->live, id);
    spares_drop_session(sandbox->spares, id);
    kernels_table_close(&sandbox->kernels, id, clock_deadline_after_s(WAIT_S));
    if (!session_table_wait(&sandbox->sessions, id, clock_deadline_after_s(WAIT_S))) {
        session_table_reopen(&sandbox->sessions, id);
        return err_set(err, ERR_SESSION_BUSY, 0, "something in the session does not end");
    }
    result = take_away(sandbox, id, tombstone, err);
    if (result != 0) {
        session_table_reopen(&sandbox->sessions, id);
        return result < 0 ? -1 : 0;
    }
    session_table_remove(&sandbox->sessions, id);
    janitor_wake(sandbox->janitor);
    return 0;
}

int session_remove_now(struct sandbox *sandbox, const char *id, struct err *err)
{
    if (!session_table_close(&sandbox->sessions, id, false)) {
        /* Somebody else deletes it: wait for that to end, one way or the other. */
        if (!session_table_wait(&sandbox->sessions, id, clock_deadline_after_s(WAIT_S))) {
            return err_set(err, ERR_SESSION_BUSY, 0, "the session is being deleted");
        }
        return 0;
    }
    return remove_closed(sandbox, id, false, err);
}

/* A lifetime that is over ends what runs; an idle time does not, since running is use. */
static bool lifetime_over(struct sandbox *sandbox, const char *id, int64_t now_ms)
{
    struct rows_session row = { .options = NULL };
    struct options options;
    bool over = false;

    if (rows_session_get(sandbox->store, id, &row, NULL) < 0) {
        return false;
    }
    if (options_decode(row.options, strlen(row.options), &options, NULL) == 0) {
        options.idle_timeout_s = 0;
        over = session_table_expiry(&options, row.created_ms, row.used_ms) != 0 &&
               session_table_expiry(&options, row.created_ms, row.used_ms) <= now_ms;
        options_done(&options);
    }
    rows_session_done(&row);
    return over;
}

void session_remove_expired(struct sandbox *sandbox, struct cancel *cancel)
{
    CLEANUP_STRV struct strv ids = { 0 };
    int64_t now_ms = clock_wall_ms();

    /* Times of use are written late: they must be there before a session is judged by them. */
    if (store_flush(sandbox->store, NULL) < 0 ||
        rows_session_expired(sandbox->store, now_ms, EXPIRED_AT_ONCE, &ids, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < ids.count && cancel_get(cancel) == CANCEL_NONE; i++) {
        bool hard = lifetime_over(sandbox, ids.items[i], now_ms);
        struct err err = ERR_INIT;

        if (session_table_close(&sandbox->sessions, ids.items[i], !hard) &&
            remove_closed(sandbox, ids.items[i], true, &err) < 0) {
            log_line(LOG_DEBUG, "session_not_removed", "id", ids.items[i], "why", err.msg, NULL);
        }
    }
}
