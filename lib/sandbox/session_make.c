/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_make: ids, workspaces and rows of new sessions.
 * Owns: nothing that lasts.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/session_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/id.h"
#include "lib/base/text.h"
#include "lib/sandbox/environments.h"
#include "lib/sandbox/environments_use.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/mounts.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_archive.h"
#include "lib/sandbox/session_remove.h"
#include "lib/sandbox/session_sweep.h"
#include "lib/sandbox/session_table.h"
#include "lib/sandbox/session_view.h"
#include "lib/sandbox/session_work.h"
#include "lib/sandbox/vetting.h"
#include "lib/store/rows_session.h"
#include "lib/work/copy.h"
#include "lib/work/hostdir.h"
#include "lib/work/workspace.h"

static int check_engine(struct sandbox *sandbox, const char *engine, struct err *err)
{
    return engine == NULL || boxes_engines_have(sandbox->boxes, engine)
               ? 0
               : err_field(err, ERR_NOT_SUPPORTED_HERE, "/engine", "this server has no engine %s",
                           engine);
}

static int resolve(struct sandbox *sandbox, struct options *options, struct err *err)
{
    if (limits_check(&options->limits, &sandbox->maxima, err) < 0 ||
        check_engine(sandbox, options->choice.engine, err) < 0 ||
        (options->require_limits && vetting_require_limits(sandbox, &options->limits, err) < 0)) {
        return -1;
    }
    if (environments_use_resolve(sandbox, &options->environment, &options->preload, err) < 0) {
        return -1;
    }
    return mounts_resolve(&sandbox->host_rules, options->mounts, options->mount_count, err);
}

static int make_owned(struct sandbox *sandbox, const char *name, int *ret_root, struct err *err)
{
    struct err first = ERR_INIT;

    if (workspace_create(sandbox->workspaces, name, ret_root, &first) == 0) {
        return 0;
    }
    if (first.code == ERR_CONFLICT && session_sweep_clear(&sandbox->sessions, name, err) < 0) {
        return -1;
    }
    return workspace_create(sandbox->workspaces, name, ret_root, err);
}

/* Makes or opens the workspace; the row gets its name. */
static int make_workspace(struct sandbox *sandbox, const struct options *options,
                          struct rows_session *row, int *ret_root, struct err *err)
{
    row->owned = options->workspace == NULL;
    if (!row->owned) {
        if (hostdir_workspace(options->workspace, &sandbox->host_rules, &row->workspace, ret_root,
                              err) < 0) {
            if (err != NULL && err->pointer[0] == '\0') {
                (void)snprintf(err->pointer, sizeof(err->pointer), "/workspace");
            }
            return -1;
        }
        return 0;
    }
    row->workspace = alloc_printf(SESSION_SWEEP_WORKSPACE "%s", row->id);
    return make_owned(sandbox, row->workspace, ret_root, err);
}

static void undo_workspace(struct sandbox *sandbox, const struct rows_session *row)
{
    struct remove_left left;

    if (row->owned && row->workspace != NULL) {
        (void)workspace_remove(sandbox->workspaces, row->workspace, &left);
    }
}

static int fill_row(struct rows_session *row, const struct session_actor *actor, const char *id,
                    const struct session_make_options *wanted, struct err *err)
{
    const struct options *options = wanted->options;
    CLEANUP_BUF struct buf text = BUF_INIT(OPTIONS_ENCODED_MAX);
    char made[ID_SIZE];

    if (options_encode(options, &text, err) < 0) {
        return -1;
    }
    (void)snprintf(row->id, sizeof(row->id), "%s", id != NULL ? id : id_make("ses", made));
    (void)snprintf(row->state, sizeof(row->state), "%s",
                   session_state_text(wanted->unfinished ? SESSION_CREATING : SESSION_READY));
    row->options = buf_take(&text, NULL);
    row->caller = actor->caller;
    row->created_ms = clock_wall_ms();
    row->updated_ms = row->created_ms;
    row->used_ms = row->created_ms;
    row->expires_ms = session_table_expiry(options, row->created_ms, row->used_ms);
    strv_copy(&row->labels, &options->labels);
    return 0;
}

/* The row of an expired session stands in nobody's way. */
static int clear_tombstone(struct sandbox *sandbox, const struct rows_session *row, struct err *err)
{
    return text_equal(row->state, session_state_text(SESSION_EXPIRED))
               ? rows_session_delete(sandbox->store, row->id, err)
               : 0;
}

static int compare(struct sandbox *sandbox, const struct session_actor *actor,
                   const struct rows_session *there, const struct rows_session *wanted,
                   struct session_view *ret_view, struct err *err)
{
    bool same = text_equal(there->options, wanted->options) &&
                (actor->all || there->caller == actor->caller);

    if (!same) {
        return err_set(err, ERR_SESSION_EXISTS, 0,
                       "there is a session %s already, with other options", wanted->id);
    }
    if (session_view_from_row(sandbox, there, ret_view, err) < 0) {
        return -1;
    }
    if (ret_view->state == SESSION_DELETING) {
        session_view_done(ret_view);
        return err_set(err, ERR_SESSION_BUSY, 0, "the session %s is just being deleted",
                       wanted->id);
    }
    return 1;
}

/* 1 and the view when the same session is there, 0 when the id is free, -1 when it is another's. */
static int find_same(struct sandbox *sandbox, const struct session_actor *actor,
                     const struct rows_session *wanted, struct session_view *ret_view,
                     struct err *err)
{
    struct rows_session row = { .options = NULL };
    int result;

    if (rows_session_get(sandbox->store, wanted->id, &row, NULL) < 0) {
        return 0;
    }
    if (text_equal(row.state, session_state_text(SESSION_EXPIRED))) {
        result = clear_tombstone(sandbox, &row, err);
    } else {
        result = compare(sandbox, actor, &row, wanted, ret_view, err);
    }
    rows_session_done(&row);
    return result;
}

static int insert(struct sandbox *sandbox, struct rows_session *row, const struct options *options,
                  struct err *err)
{
    CLEANUP_FD int root = -1;

    if (options->environment != NULL &&
        environments_check(sandbox, options->environment, err) < 0) {
        return -1;
    }
    if (make_workspace(sandbox, options, row, &root, err) < 0) {
        return -1;
    }
    if (rows_session_insert(sandbox->store, row, err) < 0) {
        undo_workspace(sandbox, row);
        return -1;
    }
    return 0;
}

/* The session of this row, made or found. Those of one id come one after the other. */
static int make_or_find(struct sandbox *sandbox, const struct session_actor *actor,
                        struct rows_session *row, const struct options *options,
                        struct session_created *made, struct err *err)
{
    int result;

    (void)pthread_mutex_lock(&sandbox->sessions.making);
    result = find_same(sandbox, actor, row, &made->view, err);
    if (result == 0) {
        result = insert(sandbox, row, options, err);
        made->is_new = result == 0;
    }
    (void)pthread_mutex_unlock(&sandbox->sessions.making);
    if (result == 0) {
        result = session_view_from_row(sandbox, row, &made->view, err);
    }
    return result < 0 ? -1 : 0;
}

int session_make_new(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                     const struct session_make_options *wanted, struct session_created *ret,
                     struct err *err)
{
    struct rows_session row = { .options = NULL };
    struct session_created made = { .is_new = false, .setup = NULL };
    int result = -1;

    if (resolve(sandbox, wanted->options, err) < 0) {
        return -1;
    }
    if (fill_row(&row, actor, id, wanted, err) == 0) {
        result = make_or_find(sandbox, actor, &row, wanted->options, &made, err);
    }
    rows_session_done(&row);
    if (result == 0) {
        *ret = made;
    }
    return result;
}

static int make_ready(struct sandbox *sandbox, struct session_entry *entry, struct err *err)
{
    struct rows_session row = { .options = NULL };
    int result;

    if (rows_session_get(sandbox->store, entry->id, &row, err) < 0) {
        return -1;
    }
    (void)snprintf(row.state, sizeof(row.state), "%s", session_state_text(SESSION_READY));
    row.updated_ms = clock_wall_ms();
    result = rows_session_update(sandbox->store, &row, err);
    rows_session_done(&row);
    if (result == 0) {
        session_table_set_state(entry, SESSION_READY);
    }
    return result;
}

/* Until it is done, one of the two is deleted or nobody wants it any more. */
static int copy_files(struct session_entry *from, struct session_entry *to, struct cancel *cancel,
                      struct err *err)
{
    struct session_work work[2];
    struct copy_result copied;
    int result;

    session_work_begin(&work[0], from, cancel);
    session_work_begin(&work[1], to, cancel);
    result =
        copy_tree(from->root, to->root, &(struct copy_options){ .cancel = cancel }, &copied, err);
    return session_work_end(&work[0], session_work_end(&work[1], result, err), err);
}

/* Fills a new session, which nobody else can use yet. */
static int fill_copy(struct sandbox *sandbox, const struct session_actor *actor,
                     struct session_entry *from, const char *id, struct cancel *cancel,
                     struct err *err)
{
    struct session_entry *to = session_table_hold(&sandbox->sessions, actor, id, true, err);
    int result;

    if (to == NULL) {
        return -1;
    }
    result = copy_files(from, to, cancel, err);
    if (result == 0) {
        result = make_ready(sandbox, to, err);
    }
    session_table_release(to, false);
    return result;
}

/* With a hold on the new session. */
static int fill_from_snapshot(struct sandbox *sandbox, const struct session_actor *actor,
                              const struct session_view *view, struct cancel *cancel,
                              struct err *err)
{
    const struct session_archive_snapshot snapshot = { .id = view->options.snapshot,
                                                       .cancel = cancel };
    struct session_entry *entry =
        session_table_hold(&sandbox->sessions, actor, view->id, true, err);
    int result;

    if (entry == NULL) {
        return -1;
    }
    result = session_archive_fill(sandbox, actor, entry, &snapshot, err);
    if (result == 0 && view->options.setup == NULL) {
        result = make_ready(sandbox, entry, err);
    }
    session_table_release(entry, false);
    return result;
}

int session_make_fill(struct sandbox *sandbox, const struct session_actor *actor,
                      struct session_view *view, struct cancel *cancel, struct err *err)
{
    if (fill_from_snapshot(sandbox, actor, view, cancel, err) < 0) {
        (void)session_remove_now(sandbox, view->id, NULL);
        return -1;
    }
    if (view->options.setup == NULL) {
        view->state = SESSION_READY;
    }
    return 0;
}

int session_make_copy(struct sandbox *sandbox, const struct session_actor *actor,
                      struct session_entry *from, const struct session_fork_wanted *wanted,
                      struct session_view *ret_view, struct err *err)
{
    struct session_created made;
    struct options options;
    int result;

    session_table_options(from, &options);
    /* The copy owns its files, and what setup installed comes along with them. */
    free(CLEANUP_TAKE(options.workspace));
    options.workspace_readonly = false;
    free(CLEANUP_TAKE(options.setup));
    free(CLEANUP_TAKE(options.snapshot));
    result = session_make_new(
        sandbox, actor, wanted->to,
        &(struct session_make_options){ .options = &options, .unfinished = true }, &made, err);
    options_done(&options);
    if (result < 0) {
        return -1;
    }
    if (!made.is_new) {
        session_view_done(&made.view);
        return err_set(err, ERR_SESSION_EXISTS, 0, "there is a session %s already", wanted->to);
    }
    if (fill_copy(sandbox, actor, from, made.view.id, wanted->cancel, err) < 0) {
        (void)session_remove_now(sandbox, made.view.id, NULL);
        session_view_done(&made.view);
        return -1;
    }
    made.view.state = SESSION_READY;
    *ret_view = made.view;
    return 0;
}

void session_make_settle(struct execution *execution, bool good)
{
    struct session_hold *hold = execution->request->session;

    if (execution->request->kind != RUN_SETUP || hold == NULL || !session_hold_is_creating(hold)) {
        return;
    }
    if (good && make_ready(execution->sandbox, session_hold_entry(hold), NULL) == 0) {
        return;
    }
    execution_leave(execution);
    (void)session_remove_now(execution->sandbox, execution->session_id, NULL);
}
