/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_snapshot: SQL of snapshots.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/store/rows_snapshot.h"

#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/store/page.h"
#include "lib/store/statement.h"
#include "lib/store/store_internal.h"

#define COLUMNS "id, name, session_id, caller, digest, bytes, entries, labels, left_out, created_ms"

void rows_snapshot_done(struct rows_snapshot *row)
{
    free(row->labels);
    free(row->left_out);
    *row = (struct rows_snapshot){ .labels = NULL };
}

static void read_row(struct statement *s, struct rows_snapshot *row)
{
    *row = (struct rows_snapshot){ .caller = (uint64_t)statement_column_int(s, 3),
                                   .bytes = (uint64_t)statement_column_int(s, 5),
                                   .entries = (uint64_t)statement_column_int(s, 6),
                                   .labels = statement_column_text(s, 7),
                                   .left_out = statement_column_text(s, 8),
                                   .created_ms = statement_column_int(s, 9) };
    statement_column_copy(s, 0, row->id, sizeof(row->id));
    statement_column_copy(s, 1, row->name, sizeof(row->name));
    statement_column_copy(s, 2, row->session_id, sizeof(row->session_id));
    statement_column_copy(s, 4, row->digest, sizeof(row->digest));
}

static int insert(struct store *store, const struct rows_snapshot *row, struct err *err)
{
    struct statement s;
    bool conflict;
    int result;

    statement_begin(&s, store,
                    "INSERT INTO snapshots (" COLUMNS ") VALUES (?1, NULLIF(?2, ''),"
                    " NULLIF(?3, ''), ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    statement_text(&s, 1, row->id);
    statement_text(&s, 2, row->name);
    statement_text(&s, 3, row->session_id);
    statement_int(&s, 4, (int64_t)row->caller);
    statement_text(&s, 5, row->digest);
    statement_int(&s, 6, (int64_t)row->bytes);
    statement_int(&s, 7, (int64_t)row->entries);
    statement_text(&s, 8, row->labels);
    statement_text(&s, 9, row->left_out);
    statement_int(&s, 10, row->created_ms);
    (void)statement_row(&s);
    conflict = statement_is_conflict(&s);
    result = statement_end(&s, err);
    return conflict ? err_set(err, ERR_CONFLICT, 0, "a snapshot by that id or name exists")
                    : result;
}

static int remove_row(struct store *store, const char *id, struct err *err)
{
    struct statement s;

    statement_begin(&s, store, "DELETE FROM snapshots WHERE id = ?1");
    statement_text(&s, 1, id);
    return statement_run(&s, err);
}

int rows_snapshot_insert(struct store *store, const struct rows_snapshot *row, struct err *err)
{
    int result;

    store_enter(store);
    result = insert(store, row, err);
    store_leave(store);
    return result;
}

int rows_snapshot_replace(struct store *store, const char *old_id, const struct rows_snapshot *row,
                          struct err *err)
{
    int result;

    store_enter(store);
    result = store_begin(store, err);
    if (result == 0 && (remove_row(store, old_id, err) < 0 || insert(store, row, err) < 0)) {
        store_rollback(store);
        result = -1;
    } else if (result == 0) {
        result = store_commit(store, err);
    }
    store_leave(store);
    return result;
}

int rows_snapshot_get(struct store *store, const char *id_or_name, struct rows_snapshot *ret_row,
                      struct err *err)
{
    struct rows_snapshot row = { .labels = NULL };
    struct statement s;
    bool found;
    int result;

    store_enter(store);
    /* Whoever names a snapshot like the id of another must not be able to stand in for it. */
    statement_begin(&s, store,
                    "SELECT " COLUMNS " FROM snapshots WHERE id = ?1 OR name = ?1"
                    " ORDER BY id <> ?1 LIMIT 1");
    statement_text(&s, 1, id_or_name);
    found = statement_row(&s);
    if (found) {
        read_row(&s, &row);
    }
    result = statement_end(&s, err);
    store_leave(store);
    if (result == 0 && !found) {
        return err_set(err, ERR_SNAPSHOT_NOT_FOUND, 0, "there is no snapshot by that id or name");
    }
    if (result == 0) {
        *ret_row = row;
    }
    return result;
}

static int has_digest(struct store *store, const char *digest, bool *ret_has, struct err *err)
{
    struct statement s;
    bool has;

    statement_begin(&s, store, "SELECT 1 FROM snapshots WHERE digest = ?1 LIMIT 1");
    statement_text(&s, 1, digest);
    has = statement_row(&s);
    if (statement_end(&s, err) < 0) {
        return -1;
    }
    *ret_has = has;
    return 0;
}

int rows_snapshot_delete(struct store *store, const struct rows_snapshot *row,
                         bool *ret_digest_used, struct err *err)
{
    int result;

    store_enter(store);
    result = remove_row(store, row->id, err);
    if (result == 0) {
        result = has_digest(store, row->digest, ret_digest_used, err);
    }
    store_leave(store);
    return result;
}

int rows_snapshot_has_digest(struct store *store, const char *digest, bool *ret_has,
                             struct err *err)
{
    int result;

    store_enter(store);
    result = has_digest(store, digest, ret_has, err);
    store_leave(store);
    return result;
}

void rows_snapshot_page_done(struct rows_snapshot_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        rows_snapshot_done(&page->rows[i]);
    }
    free(page->rows);
    free(page->next_cursor);
    *page = (struct rows_snapshot_page){ .count = 0 };
}

int rows_snapshot_list(struct store *store, const struct rows_snapshot_filter *filter,
                       struct rows_snapshot_page *ret_page, struct err *err)
{
    struct rows_snapshot_page rows = { .count = 0 };
    struct statement s;
    struct page page;
    int result;

    if (page_init(&page, filter->limit, filter->cursor, err) < 0) {
        return -1;
    }
    page_text(&page, " AND session_id = ?", filter->session_id);
    if (filter->by_caller) {
        page_int(&page, " AND caller = ?", (int64_t)filter->caller);
    }
    rows.rows = alloc_zero(filter->limit, sizeof(*rows.rows));
    store_enter(store);
    page_begin(&page, &s, store, COLUMNS, "snapshots");
    while (page_row(&page, &s)) {
        read_row(&s, &rows.rows[rows.count++]);
    }
    result = statement_end(&s, err);
    store_leave(store);
    rows.next_cursor = page_end(&page);
    if (result < 0) {
        rows_snapshot_page_done(&rows);
        return -1;
    }
    *ret_page = rows;
    return 0;
}

int rows_snapshot_oldest(struct store *store, int64_t before_ms, struct rows_snapshot *ret_row,
                         struct err *err)
{
    struct rows_snapshot row = { .labels = NULL };
    struct statement s;
    bool found;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "SELECT " COLUMNS " FROM snapshots WHERE name IS NULL AND created_ms < ?1"
                    " ORDER BY created_ms, id LIMIT 1");
    statement_int(&s, 1, before_ms);
    found = statement_row(&s);
    if (found) {
        read_row(&s, &row);
    }
    result = statement_end(&s, err);
    store_leave(store);
    if (result == 0 && !found) {
        return err_set(err, ERR_SNAPSHOT_NOT_FOUND, 0, "there is no such snapshot");
    }
    if (result == 0) {
        *ret_row = row;
    }
    return result;
}

int rows_snapshot_total(struct store *store, bool named, uint64_t *ret_bytes, struct err *err)
{
    struct statement s;
    uint64_t total = 0;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "SELECT COALESCE(SUM(bytes), 0) FROM"
                    " (SELECT MAX(bytes) AS bytes FROM snapshots WHERE ?1 = 0 OR name IS NOT NULL"
                    " GROUP BY digest)");
    statement_int(&s, 1, named);
    if (statement_row(&s)) {
        total = (uint64_t)statement_column_int(&s, 0);
    }
    result = statement_end(&s, err);
    store_leave(store);
    if (result == 0) {
        *ret_bytes = total;
    }
    return result;
}
