/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshots: looking up, listing, deleting and expiring snapshots (snapshots_make.c makes them).
 * Owns: the directory of archives.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/snapshots.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/sandbox/lines.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/snapshots_internal.h"
#include "lib/work/depot.h"

#define MAX_BYTES_DEFAULT (UINT64_C(10) << 30)
#define MAX_AGE_S_DEFAULT (30.0 * 24 * 3600)
#define MS_PER_S 1000.0

/* ---- open, close ---- */

static void sweep_one(void *context, const char *digest)
{
    struct snapshots *snapshots = context;
    bool has = true;

    if (rows_snapshot_has_digest(snapshots->sandbox->store, digest, &has, NULL) == 0 && !has) {
        depot_remove(snapshots->depot, digest);
        log_line(LOG_DEBUG, "archive_without_snapshot", "digest", digest, NULL);
    }
}

struct snapshots *snapshots_open(struct sandbox *sandbox, const struct snapshots_config *config,
                                 struct err *err)
{
    struct snapshots *snapshots;
    double age_s = config->max_age_s > 0 ? config->max_age_s : MAX_AGE_S_DEFAULT;
    int depot;

    if (depot_open(config->directory, &depot, err) < 0) {
        return NULL;
    }
    snapshots = alloc_zero(1, sizeof(*snapshots));
    snapshots->sandbox = sandbox;
    snapshots->depot = depot;
    snapshots->max_bytes = config->max_bytes > 0 ? config->max_bytes : MAX_BYTES_DEFAULT;
    snapshots->max_age_ms = (int64_t)(age_s * MS_PER_S);
    (void)pthread_mutex_init(&snapshots->lock, NULL);
    (void)depot_each(depot, sweep_one, snapshots, NULL);
    return snapshots;
}

void snapshots_close(struct snapshots *snapshots)
{
    if (snapshots != NULL) {
        fd_close(snapshots->depot);
        (void)pthread_mutex_destroy(&snapshots->lock);
        free(snapshots);
    }
}

/* ---- views ---- */

void snapshots_view_done(struct snapshots_view *view)
{
    strv_done(&view->labels);
    strv_done(&view->left_out);
}

void snapshots_page_done(struct snapshots_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        snapshots_view_done(&page->items[i]);
    }
    free(page->items);
    free(page->next_cursor);
    *page = (struct snapshots_page){ .count = 0 };
}

void snapshots_view_from_row(const struct rows_snapshot *row, struct snapshots_view *ret_view)
{
    struct snapshots_view view = { .bytes = row->bytes,
                                   .entries = row->entries,
                                   .created_ms = row->created_ms };

    memcpy(view.id, row->id, sizeof(view.id));
    memcpy(view.name, row->name, sizeof(view.name));
    memcpy(view.session_id, row->session_id, sizeof(view.session_id));
    memcpy(view.digest, row->digest, sizeof(view.digest));
    lines_split(row->labels, &view.labels);
    lines_split(row->left_out, &view.left_out);
    /* snapshots_make.c ends a list that was cut with an empty text. */
    if (view.left_out.count > 0 && view.left_out.items[view.left_out.count - 1][0] == '\0') {
        view.left_truncated = true;
        view.left_out.count--;
        free(CLEANUP_TAKE(view.left_out.items[view.left_out.count]));
    }
    *ret_view = view;
}

/* ---- look up ---- */

int snapshots_find(struct snapshots *snapshots, const struct session_actor *actor, const char *id,
                   struct rows_snapshot *ret_row, struct err *err)
{
    struct rows_snapshot row;

    if (rows_snapshot_get(snapshots->sandbox->store, id, &row, err) < 0) {
        return -1;
    }
    if (!actor->all && row.caller != actor->caller) {
        rows_snapshot_done(&row);
        return err_set(err, ERR_SNAPSHOT_NOT_FOUND, 0, "there is no snapshot by that id or name");
    }
    *ret_row = row;
    return 0;
}

int snapshots_get(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                  struct snapshots_view *ret_view, struct err *err)
{
    struct rows_snapshot row;

    if (snapshots_find(sandbox->snapshots, actor, id, &row, err) < 0) {
        return -1;
    }
    snapshots_view_from_row(&row, ret_view);
    rows_snapshot_done(&row);
    return 0;
}

int snapshots_read(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                   int *ret_file, struct snapshots_view *ret_view, struct err *err)
{
    struct snapshots_view view;
    uint64_t size;

    if (snapshots_get(sandbox, actor, id, &view, err) < 0) {
        return -1;
    }
    if (depot_get(sandbox->snapshots->depot, view.digest, ret_file, &size, err) < 0) {
        snapshots_view_done(&view);
        return -1;
    }
    *ret_view = view;
    return 0;
}

int snapshots_list(struct sandbox *sandbox, const struct session_actor *actor,
                   const struct snapshots_filter *filter, struct snapshots_page *ret_page,
                   struct err *err)
{
    const struct rows_snapshot_filter wanted = { .limit = filter->limit,
                                                 .cursor = filter->cursor,
                                                 .session_id = filter->session_id,
                                                 .by_caller = !actor->all,
                                                 .caller = actor->caller };
    struct snapshots_page page = { .count = 0 };
    struct rows_snapshot_page rows;

    if (rows_snapshot_list(sandbox->store, &wanted, &rows, err) < 0) {
        return -1;
    }
    page.items = alloc_zero(rows.count + 1, sizeof(*page.items));
    for (size_t i = 0; i < rows.count; i++) {
        snapshots_view_from_row(&rows.rows[i], &page.items[page.count++]);
    }
    page.next_cursor = CLEANUP_TAKE(rows.next_cursor);
    rows_snapshot_page_done(&rows);
    *ret_page = page;
    return 0;
}

/* ---- delete ---- */

int snapshots_remove_row(struct snapshots *snapshots, const struct rows_snapshot *row,
                         struct err *err)
{
    bool used = true;

    if (rows_snapshot_delete(snapshots->sandbox->store, row, &used, err) < 0) {
        return -1;
    }
    if (!used) {
        depot_remove(snapshots->depot, row->digest);
    }
    return 0;
}

int snapshots_delete(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                     struct err *err)
{
    struct snapshots *snapshots = sandbox->snapshots;
    struct err failure = ERR_INIT;
    struct rows_snapshot row;
    int result;

    (void)pthread_mutex_lock(&snapshots->lock);
    result = snapshots_find(snapshots, actor, id, &row, &failure);
    if (result == 0) {
        result = snapshots_remove_row(snapshots, &row, &failure);
        rows_snapshot_done(&row);
    }
    (void)pthread_mutex_unlock(&snapshots->lock);
    if (result < 0 && failure.code != ERR_SNAPSHOT_NOT_FOUND) {
        return err_set(err, failure.code, failure.sys, "%s", failure.msg);
    }
    return 0;
}

/* ---- expiry ---- */

/* Locked. True: one is gone. */
static bool remove_oldest(struct snapshots *snapshots, int64_t before_ms)
{
    struct rows_snapshot row;
    int result;

    if (rows_snapshot_oldest(snapshots->sandbox->store, before_ms, &row, NULL) < 0) {
        return false;
    }
    result = snapshots_remove_row(snapshots, &row, NULL);
    if (result == 0) {
        log_line(LOG_INFO, "snapshot_expired", "id", row.id, NULL);
    }
    rows_snapshot_done(&row);
    return result == 0;
}

/* Would so many bytes fit beside all snapshots, or beside those that have a name? 1, 0 or -1. */
static int fits(const struct snapshots *snapshots, bool named, uint64_t bytes, struct err *err)
{
    uint64_t total;

    if (rows_snapshot_total(snapshots->sandbox->store, named, &total, err) < 0) {
        return -1;
    }
    return total <= snapshots->max_bytes && bytes <= snapshots->max_bytes - total;
}

int snapshots_make_room(struct snapshots *snapshots, uint64_t bytes, struct err *err)
{
    /* None goes for nothing. */
    int possible = fits(snapshots, true, bytes, err);
    int result;

    while ((result = fits(snapshots, false, bytes, err)) == 0 && possible > 0) {
        possible = remove_oldest(snapshots, INT64_MAX) ? 1 : 0;
    }
    if (result == 0 && possible == 0) {
        (void)err_set(err, ERR_STORE_FULL, 0, "all snapshots together may take %llu bytes",
                      (unsigned long long)snapshots->max_bytes);
        return err_remedy(err, "delete snapshots that are not needed any more");
    }
    return result > 0 ? 0 : -1;
}

void snapshots_expire(struct snapshots *snapshots)
{
    (void)pthread_mutex_lock(&snapshots->lock);
    while (remove_oldest(snapshots, clock_wall_ms() - snapshots->max_age_ms)) {
    }
    (void)pthread_mutex_unlock(&snapshots->lock);
}
