/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session: sessions as callers see them, over the store's rows and the table of those in use.
 * Owns: nothing that lasts.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/session.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_make.h"
#include "lib/sandbox/session_remove.h"
#include "lib/sandbox/session_table.h"
#include "lib/sandbox/session_view.h"
#include "lib/sandbox/setup.h"
#include "lib/store/rows_session.h"
#include "lib/work/scan.h"

struct session_hold {
    struct session_entry *entry;
    struct options options; /* as they were when the hold was taken */
};

const char *const session_hidden[2] = { SESSION_DEPS, NULL };

static const char *const state_texts[] = {
    [SESSION_CREATING] = "creating",
    [SESSION_READY] = "ready",
    [SESSION_DELETING] = "deleting",
    [SESSION_EXPIRED] = "expired",
};

const char *session_state_text(enum session_state state)
{
    return state_texts[state];
}

int session_state_parse(const char *text, enum session_state *ret_state)
{
    for (size_t i = 0; i < sizeof(state_texts) / sizeof(state_texts[0]); i++) {
        if (text_equal(text, state_texts[i])) {
            *ret_state = (enum session_state)i;
            return 0;
        }
    }
    return -1;
}

void session_page_done(struct session_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        session_view_done(&page->items[i]);
    }
    free(page->items);
    free(page->next_cursor);
    *page = (struct session_page){ 0 };
}

static bool may_see(const struct session_actor *actor, const struct rows_session *row)
{
    return actor->all || row->caller == actor->caller;
}

static int get_row(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                   struct rows_session *ret_row, struct err *err)
{
    if (rows_session_get(sandbox->store, id, ret_row, err) < 0) {
        return -1;
    }
    if (!may_see(actor, ret_row)) {
        rows_session_done(ret_row);
        return err_set(err, ERR_SESSION_NOT_FOUND, 0, "there is no session %s", id);
    }
    return 0;
}

/* Times of use are written late; who asks after a call shall see the call. */
static void flush_touches(struct sandbox *sandbox)
{
    struct store_stats stats;

    store_stats(sandbox->store, &stats);
    if (stats.queued > 0) {
        (void)store_flush(sandbox->store, NULL);
    }
}

int session_get(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                bool measure, struct session_view *ret_view, struct err *err)
{
    struct rows_session row = { .options = NULL };
    int result;

    flush_touches(sandbox);
    if (get_row(sandbox, actor, id, &row, err) < 0) {
        return -1;
    }
    result = session_view_from_row(sandbox, &row, ret_view, err);
    rows_session_done(&row);
    if (result == 0 && ret_view->state == SESSION_EXPIRED) {
        session_view_done(ret_view);
        return err_set(err, ERR_SESSION_EXPIRED, 0, "the session ran out of time and was removed");
    }
    if (result == 0 && measure) {
        session_view_measure(sandbox, actor, ret_view);
    }
    return result;
}

int session_list(struct sandbox *sandbox, const struct session_actor *actor,
                 const struct session_filter *filter, struct session_page *ret_page,
                 struct err *err)
{
    struct rows_session_filter rows_filter = {
        .limit = filter->limit,
        .cursor = filter->cursor,
        .state = filter->by_state ? session_state_text(filter->state) : NULL,
        .except = filter->by_state ? NULL : session_state_text(SESSION_EXPIRED),
        .label = filter->label,
        .by_caller = !actor->all,
        .caller = actor->caller,
    };
    struct rows_session_page rows;
    struct session_page page = { 0 };

    if (rows_session_list(sandbox->store, &rows_filter, &rows, err) < 0) {
        return -1;
    }
    page.items = alloc_zero(rows.count + 1, sizeof(*page.items));
    for (size_t i = 0; i < rows.count; i++) {
        if (session_view_from_row(sandbox, &rows.rows[i], &page.items[page.count], NULL) == 0) {
            page.count++;
        }
    }
    page.next_cursor = CLEANUP_TAKE(rows.next_cursor);
    rows_session_page_done(&rows);
    *ret_page = page;
    return 0;
}

static int hold(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                bool creating, struct session_hold **ret_hold, struct err *err)
{
    struct session_entry *entry = session_table_hold(&sandbox->sessions, actor, id, creating, err);
    struct session_hold *taken;

    if (entry == NULL) {
        return -1;
    }
    taken = alloc_zero(1, sizeof(*taken));
    taken->entry = entry;
    session_table_options(entry, &taken->options);
    *ret_hold = taken;
    return 0;
}

/* The setup execution over a held session; the hold goes with it. */
static struct execution *submit_setup(struct sandbox *sandbox, const struct session_actor *actor,
                                      struct session_hold *hold, const char *command,
                                      struct err *err)
{
    struct run_request *request = setup_request(command, &hold->options);

    request->caller = actor->caller;
    request->session = hold;
    return sandbox_submit(sandbox, request, err);
}

static int start_setup(struct sandbox *sandbox, const struct session_actor *actor,
                       struct session_created *made, struct err *err)
{
    struct session_hold *held = NULL;

    if (!made->is_new || made->view.options.setup == NULL) {
        return 0;
    }
    if (hold(sandbox, actor, made->view.id, true, &held, err) == 0) {
        made->setup = submit_setup(sandbox, actor, held, made->view.options.setup, err);
    }
    if (made->setup == NULL) {
        (void)session_remove_now(sandbox, made->view.id, NULL);
        session_view_done(&made->view);
        return -1;
    }
    return 0;
}

int session_create(struct sandbox *sandbox, const struct session_actor *actor,
                   const struct session_wanted *wanted, struct session_created *ret,
                   struct err *err)
{
    struct options *options = wanted->options;
    const struct session_make_options how = {
        .options = options, .unfinished = options->setup != NULL || options->snapshot != NULL
    };
    struct session_created made;
    int result = session_make_new(sandbox, actor, wanted->id, &how, &made, err);

    options_done(options);
    if (result == 0 && made.is_new && made.view.options.snapshot != NULL &&
        session_make_fill(sandbox, actor, &made.view, wanted->cancel, err) < 0) {
        session_view_done(&made.view);
        return -1;
    }
    if (result < 0 || start_setup(sandbox, actor, &made, err) < 0) {
        return -1;
    }
    *ret = made;
    return 0;
}

struct execution *session_setup(struct sandbox *sandbox, const struct session_actor *actor,
                                const char *id, const char *command, struct err *err)
{
    struct session_hold *held;

    if (hold(sandbox, actor, id, false, &held, err) < 0) {
        return NULL;
    }
    return submit_setup(sandbox, actor, held, command, err);
}

/* What a session was made of can't change under it. */
static int check_patch(const struct options *old, const struct options *new, struct err *err)
{
    if (!choice_equal(&old->choice, &new->choice) || !text_equal(old->workspace, new->workspace) ||
        !text_equal(old->setup, new->setup) || !text_equal(old->snapshot, new->snapshot) ||
        old->mount_count != new->mount_count) {
        return err_set(err, ERR_BAD_VALUE, 0,
                       "engine, image, workspace, setup and mounts of a session can't be changed");
    }
    return 0;
}

static int write_patch(struct sandbox *sandbox, struct session_entry *entry,
                       const struct options *options, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT(OPTIONS_ENCODED_MAX);
    struct rows_session row = { .options = NULL };
    int result;

    if (options_encode(options, &text, err) < 0) {
        return -1;
    }
    flush_touches(sandbox);
    if (rows_session_get(sandbox->store, entry->id, &row, err) < 0) {
        return -1;
    }
    free(row.options);
    row.options = buf_take(&text, NULL);
    strv_done(&row.labels);
    strv_copy(&row.labels, &options->labels);
    row.updated_ms = clock_wall_ms();
    row.expires_ms = session_table_expiry(options, row.created_ms, row.used_ms);
    result = rows_session_update(sandbox->store, &row, err);
    if (result == 0) {
        session_table_set(entry, options, row.updated_ms);
    }
    rows_session_done(&row);
    return result;
}

static int patch_held(struct sandbox *sandbox, struct session_entry *entry,
                      const struct options *options, struct err *err)
{
    struct options old;
    int result;

    session_table_options(entry, &old);
    result = check_patch(&old, options, err);
    options_done(&old);
    if (result < 0 || limits_check(&options->limits, &sandbox->maxima, err) < 0) {
        return -1;
    }
    return write_patch(sandbox, entry, options, err);
}

int session_patch(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                  struct options *options, struct session_view *ret_view, struct err *err)
{
    struct session_entry *entry = session_table_hold(&sandbox->sessions, actor, id, false, err);
    int result = -1;

    if (entry != NULL) {
        result = patch_held(sandbox, entry, options, err);
        session_table_release(entry, false);
    }
    options_done(options);
    return result < 0 ? -1 : session_get(sandbox, actor, id, false, ret_view, err);
}

int session_keepalive(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                      struct session_view *ret_view, struct err *err)
{
    struct session_entry *entry = session_table_hold(&sandbox->sessions, actor, id, true, err);

    if (entry == NULL) {
        return -1;
    }
    session_table_release(entry, true);
    if (store_flush(sandbox->store, err) < 0) {
        return -1;
    }
    return session_get(sandbox, actor, id, false, ret_view, err);
}

int session_delete(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                   struct err *err)
{
    struct rows_session row = { .options = NULL };
    bool visible;

    if (rows_session_get(sandbox->store, id, &row, NULL) < 0) {
        return 0;
    }
    visible = may_see(actor, &row);
    rows_session_done(&row);
    return visible ? session_remove_now(sandbox, id, err) : 0;
}

int session_fork(struct sandbox *sandbox, const struct session_actor *actor,
                 const struct session_fork_wanted *wanted, struct session_view *ret_view,
                 struct err *err)
{
    struct session_entry *entry =
        session_table_hold(&sandbox->sessions, actor, wanted->from, false, err);
    int result;

    if (entry == NULL) {
        return -1;
    }
    result = session_make_copy(sandbox, actor, entry, wanted, ret_view, err);
    session_table_release(entry, false);
    return result;
}

int session_hold(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                 struct session_hold **ret_hold, struct err *err)
{
    return hold(sandbox, actor, id, false, ret_hold, err);
}

int session_hold_creating(struct sandbox *sandbox, const struct session_actor *actor,
                          const char *id, struct session_hold **ret_hold, struct err *err)
{
    return hold(sandbox, actor, id, true, ret_hold, err);
}

bool session_hold_is_creating(const struct session_hold *hold)
{
    return session_table_state(hold->entry) == SESSION_CREATING;
}

struct session_entry *session_hold_entry(const struct session_hold *hold)
{
    return hold->entry;
}

const char *session_hold_id(const struct session_hold *hold)
{
    return hold->entry->id;
}

const char *session_hold_path(const struct session_hold *hold)
{
    return hold->entry->path;
}

int session_hold_root(const struct session_hold *hold)
{
    return hold->entry->root;
}

const struct options *session_hold_options(const struct session_hold *hold)
{
    return &hold->options;
}

void session_release(struct session_hold *hold, bool use)
{
    if (hold == NULL) {
        return;
    }
    session_table_release(hold->entry, use);
    options_done(&hold->options);
    free(hold);
}
