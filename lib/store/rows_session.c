/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_session: SQL of sessions and labels.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/store/rows_session.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/container.h"
#include "lib/store/page.h"
#include "lib/store/statement.h"
#include "lib/store/store_internal.h"
#include "lib/store/writer.h"

#define COLUMNS                                                                      \
    "id, state, options, workspace, owned, caller, created_ms, updated_ms, used_ms," \
    " expires_ms"

void rows_session_done(struct rows_session *row)
{
    free(row->options);
    free(row->workspace);
    strv_done(&row->labels);
    *row = (struct rows_session){ .owned = false };
}

static void read_row(struct statement *s, struct rows_session *row)
{
    *row = (struct rows_session){ .owned = statement_column_int(s, 4) != 0 };
    statement_column_copy(s, 0, row->id, sizeof(row->id));
    statement_column_copy(s, 1, row->state, sizeof(row->state));
    row->options = statement_column_text(s, 2);
    row->workspace = statement_column_text(s, 3);
    row->caller = (uint64_t)statement_column_int(s, 5);
    row->created_ms = statement_column_int(s, 6);
    row->updated_ms = statement_column_int(s, 7);
    row->used_ms = statement_column_int(s, 8);
    row->expires_ms = statement_column_int(s, 9);
}

static int read_labels(struct store *store, struct rows_session *row, struct err *err)
{
    struct statement s;

    statement_begin(&s, store, "SELECT label FROM labels WHERE session_id = ?1 ORDER BY label");
    statement_text(&s, 1, row->id);
    while (statement_row(&s)) {
        char *label = statement_column_text(&s, 0);

        strv_add(&row->labels, label);
        free(label);
    }
    return statement_end(&s, err);
}

static int write_labels(struct store *store, const struct rows_session *row, struct err *err)
{
    struct statement s;

    statement_begin(&s, store, "DELETE FROM labels WHERE session_id = ?1");
    statement_text(&s, 1, row->id);
    (void)statement_row(&s);
    if (statement_end(&s, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < row->labels.count; i++) {
        statement_begin(&s, store,
                        "INSERT OR IGNORE INTO labels (session_id, label) VALUES (?1, ?2)");
        statement_text(&s, 1, row->id);
        statement_text(&s, 2, row->labels.items[i]);
        (void)statement_row(&s);
        if (statement_end(&s, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static void bind_row(struct statement *s, const struct rows_session *row)
{
    statement_text(s, 1, row->id);
    statement_text(s, 2, row->state);
    statement_text(s, 3, row->options);
    statement_text(s, 4, row->workspace);
    statement_int(s, 5, row->owned ? 1 : 0);
    statement_int(s, 6, row->updated_ms);
    statement_int(s, 7, row->used_ms);
    statement_int(s, 8, row->expires_ms);
}

static int insert(struct store *store, const struct rows_session *row, struct err *err)
{
    struct statement s;
    bool conflict;

    statement_begin(&s, store,
                    "INSERT INTO sessions (id, state, options, workspace, owned, updated_ms,"
                    " used_ms, expires_ms, caller, created_ms)"
                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    bind_row(&s, row);
    statement_int(&s, 9, (int64_t)row->caller);
    statement_int(&s, 10, row->created_ms);
    (void)statement_row(&s);
    conflict = statement_is_conflict(&s);
    if (statement_end(&s, err) < 0) {
        return conflict ? err_set(err, ERR_SESSION_EXISTS, 0, "a session by that id exists") : -1;
    }
    return write_labels(store, row, err);
}

static int not_found(struct err *err)
{
    return err_set(err, ERR_SESSION_NOT_FOUND, 0, "there is no session by that id");
}

static int update(struct store *store, const struct rows_session *row, struct err *err)
{
    struct statement s;

    statement_begin(&s, store,
                    "UPDATE sessions SET state = ?2, options = ?3, workspace = ?4, owned = ?5,"
                    " updated_ms = ?6, used_ms = MAX(used_ms, ?7), expires_ms = ?8"
                    " WHERE id = ?1");
    bind_row(&s, row);
    (void)statement_row(&s);
    if (statement_end(&s, err) < 0) {
        return -1;
    }
    return s.changes == 0 ? not_found(err) : write_labels(store, row, err);
}

static int in_transaction(struct store *store, const struct rows_session *row,
                          int (*work)(struct store *, const struct rows_session *, struct err *),
                          struct err *err)
{
    int result;

    store_enter(store);
    result = store_begin(store, err);
    if (result == 0) {
        result = work(store, row, err);
        if (result == 0) {
            result = store_commit(store, err);
        } else {
            store_rollback(store);
        }
    }
    store_leave(store);
    return result;
}

int rows_session_insert(struct store *store, const struct rows_session *row, struct err *err)
{
    return in_transaction(store, row, insert, err);
}

int rows_session_update(struct store *store, const struct rows_session *row, struct err *err)
{
    return in_transaction(store, row, update, err);
}

int rows_session_get(struct store *store, const char *id, struct rows_session *ret_row,
                     struct err *err)
{
    struct rows_session row = { .owned = false };
    struct statement s;
    bool found;
    int result;

    store_enter(store);
    statement_begin(&s, store, "SELECT " COLUMNS " FROM sessions WHERE id = ?1");
    statement_text(&s, 1, id);
    found = statement_row(&s);
    if (found) {
        read_row(&s, &row);
    }
    result = statement_end(&s, err);
    if (result == 0 && found) {
        result = read_labels(store, &row, err);
    }
    store_leave(store);
    if (result == 0 && !found) {
        result = not_found(err);
    }
    if (result < 0) {
        rows_session_done(&row);
        return -1;
    }
    *ret_row = row;
    return 0;
}

int rows_session_delete(struct store *store, const char *id, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store, "DELETE FROM sessions WHERE id = ?1");
    statement_text(&s, 1, id);
    result = statement_run(&s, err);
    store_leave(store);
    return result;
}

struct touch {
    struct writer_job job;
    char id[STORE_ID_SIZE];
    int64_t used_ms;
    int64_t expires_ms;
};

static int touch_write(struct store *store, struct writer_job *job, struct err *err)
{
    const struct touch *touch = CONTAINER_OF(job, struct touch, job);
    struct statement s;

    /* MAX: calls that end at the same time may arrive in another order. */
    statement_begin(&s, store,
                    "UPDATE sessions SET used_ms = MAX(used_ms, ?2), expires_ms = ?3"
                    " WHERE id = ?1");
    statement_text(&s, 1, touch->id);
    statement_int(&s, 2, touch->used_ms);
    statement_int(&s, 3, touch->expires_ms);
    return statement_run(&s, err);
}

static void touch_drop(struct writer_job *job)
{
    free(CONTAINER_OF(job, struct touch, job));
}

void rows_session_touch_soon(struct store *store, const char *id, int64_t used_ms,
                             int64_t expires_ms)
{
    struct touch *touch = alloc_zero(1, sizeof(*touch));

    touch->job = (struct writer_job){ .write = touch_write, .drop = touch_drop };
    (void)snprintf(touch->id, sizeof(touch->id), "%s", id);
    touch->used_ms = used_ms;
    touch->expires_ms = expires_ms;
    writer_submit(store->writer, &touch->job);
}

void rows_session_page_done(struct rows_session_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        rows_session_done(&page->rows[i]);
    }
    free(page->rows);
    free(page->next_cursor);
    *page = (struct rows_session_page){ .count = 0 };
}

static int read_page(struct store *store, struct page *page, size_t limit,
                     struct rows_session_page *rows, struct err *err)
{
    struct statement s;
    int result;

    rows->rows = alloc_zero(limit, sizeof(*rows->rows));
    page_begin(page, &s, store, COLUMNS, "sessions");
    while (page_row(page, &s)) {
        read_row(&s, &rows->rows[rows->count++]);
    }
    result = statement_end(&s, err);
    for (size_t i = 0; i < rows->count && result == 0; i++) {
        result = read_labels(store, &rows->rows[i], err);
    }
    return result;
}

int rows_session_list(struct store *store, const struct rows_session_filter *filter,
                      struct rows_session_page *ret_page, struct err *err)
{
    struct rows_session_page rows = { .count = 0 };
    struct page page;
    int result;

    if (page_init(&page, filter->limit, filter->cursor, err) < 0) {
        return -1;
    }
    page_text(&page, " AND state = ?", filter->state);
    page_text(&page, " AND state <> ?", filter->except);
    if (filter->by_caller) {
        page_int(&page, " AND caller = ?", (int64_t)filter->caller);
    }
    page_text(&page, " AND id IN (SELECT session_id FROM labels WHERE label = ?)", filter->label);
    store_enter(store);
    result = read_page(store, &page, filter->limit, &rows, err);
    store_leave(store);
    rows.next_cursor = page_end(&page);
    if (result < 0) {
        rows_session_page_done(&rows);
        return -1;
    }
    *ret_page = rows;
    return 0;
}

int rows_session_expired(struct store *store, int64_t now_ms, size_t limit, struct strv *ids,
                         struct err *err)
{
    struct statement s;
    char id[STORE_ID_SIZE];
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "SELECT id FROM sessions WHERE expires_ms > 0 AND expires_ms <= ?1"
                    " ORDER BY expires_ms LIMIT ?2");
    statement_int(&s, 1, now_ms);
    statement_int(&s, 2, (int64_t)limit);
    while (statement_row(&s)) {
        statement_column_copy(&s, 0, id, sizeof(id));
        strv_add(ids, id);
    }
    result = statement_end(&s, err);
    store_leave(store);
    return result;
}

int rows_session_find(struct store *store, const char *part, char ret_id[static STORE_ID_SIZE],
                      bool *ret_found, struct err *err)
{
    struct statement s;
    bool found;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "SELECT id FROM sessions WHERE instr(options, ?1) > 0 AND state <> 'expired'"
                    " LIMIT 1");
    statement_text(&s, 1, part);
    found = statement_row(&s);
    if (found) {
        statement_column_copy(&s, 0, ret_id, STORE_ID_SIZE);
    }
    result = statement_end(&s, err);
    store_leave(store);
    if (result == 0) {
        *ret_found = found;
    }
    return result;
}

int rows_session_half_done(struct store *store, struct strv *ids, struct err *err)
{
    struct statement s;
    char id[STORE_ID_SIZE];
    int result;

    store_enter(store);
    statement_begin_once(&s, store,
                         "SELECT id FROM sessions WHERE state IN ('creating', 'deleting')");
    while (statement_row(&s)) {
        statement_column_copy(&s, 0, id, sizeof(id));
        strv_add(ids, id);
    }
    result = statement_end(&s, err);
    store_leave(store);
    return result;
}

int rows_session_workspaces(struct store *store, struct strv *names, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin_once(&s, store,
                         "SELECT workspace FROM sessions WHERE owned = 1 AND state <> 'expired'");
    while (statement_row(&s)) {
        char *name = statement_column_text(&s, 0);

        strv_add(names, name);
        free(name);
    }
    result = statement_end(&s, err);
    store_leave(store);
    return result;
}
