/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_environment: SQL of environments.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/store/rows_environment.h"

#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/store/page.h"
#include "lib/store/statement.h"
#include "lib/store/store_internal.h"

#define COLUMNS "id, name, state, spec, execution_id, caller, bytes, created_ms, used_ms"

void rows_environment_done(struct rows_environment *row)
{
    free(row->spec);
    *row = (struct rows_environment){ .spec = NULL };
}

static void read_row(struct statement *s, struct rows_environment *row)
{
    *row = (struct rows_environment){ .spec = statement_column_text(s, 3),
                                      .caller = (uint64_t)statement_column_int(s, 5),
                                      .bytes = (uint64_t)statement_column_int(s, 6),
                                      .created_ms = statement_column_int(s, 7),
                                      .used_ms = statement_column_int(s, 8) };
    statement_column_copy(s, 0, row->id, sizeof(row->id));
    statement_column_copy(s, 1, row->name, sizeof(row->name));
    statement_column_copy(s, 2, row->state, sizeof(row->state));
    statement_column_copy(s, 4, row->execution_id, sizeof(row->execution_id));
}

static int taken(struct err *err)
{
    return err_set(err, ERR_CONFLICT, 0, "an environment by that id or name exists");
}

static int not_found(struct err *err)
{
    return err_set(err, ERR_ENVIRONMENT_NOT_FOUND, 0, "there is no environment by that id or name");
}

int rows_environment_insert(struct store *store, const struct rows_environment *row,
                            struct err *err)
{
    struct statement s;
    bool conflict;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "INSERT INTO environments (" COLUMNS ") VALUES (?1, NULLIF(?2, ''), ?3, ?4,"
                    " NULLIF(?5, ''), ?6, ?7, ?8, ?9)");
    statement_text(&s, 1, row->id);
    statement_text(&s, 2, row->name);
    statement_text(&s, 3, row->state);
    statement_text(&s, 4, row->spec);
    statement_text(&s, 5, row->execution_id);
    statement_int(&s, 6, (int64_t)row->caller);
    statement_int(&s, 7, (int64_t)row->bytes);
    statement_int(&s, 8, row->created_ms);
    statement_int(&s, 9, row->used_ms);
    (void)statement_row(&s);
    conflict = statement_is_conflict(&s);
    result = statement_end(&s, err);
    store_leave(store);
    return conflict ? taken(err) : result;
}

int rows_environment_update(struct store *store, const struct rows_environment *row,
                            struct err *err)
{
    struct statement s;
    bool conflict;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "UPDATE environments SET name = NULLIF(?2, ''), state = ?3,"
                    " execution_id = NULLIF(?4, ''), bytes = ?5, used_ms = ?6 WHERE id = ?1");
    statement_text(&s, 1, row->id);
    statement_text(&s, 2, row->name);
    statement_text(&s, 3, row->state);
    statement_text(&s, 4, row->execution_id);
    statement_int(&s, 5, (int64_t)row->bytes);
    statement_int(&s, 6, row->used_ms);
    (void)statement_row(&s);
    conflict = statement_is_conflict(&s);
    result = statement_end(&s, err);
    store_leave(store);
    if (conflict) {
        return taken(err);
    }
    return result == 0 && s.changes == 0 ? not_found(err) : result;
}

int rows_environment_get(struct store *store, const char *id_or_name,
                         struct rows_environment *ret_row, struct err *err)
{
    struct rows_environment row = { .spec = NULL };
    struct statement s;
    bool found;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "SELECT " COLUMNS " FROM environments WHERE id = ?1 OR name = ?1"
                    " ORDER BY id <> ?1 LIMIT 1");
    statement_text(&s, 1, id_or_name);
    found = statement_row(&s);
    if (found) {
        read_row(&s, &row);
    }
    result = statement_end(&s, err);
    store_leave(store);
    if (result == 0 && !found) {
        return not_found(err);
    }
    if (result == 0) {
        *ret_row = row;
    }
    return result;
}

int rows_environment_delete(struct store *store, const char *id, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store, "DELETE FROM environments WHERE id = ?1");
    statement_text(&s, 1, id);
    result = statement_run(&s, err);
    store_leave(store);
    return result;
}

void rows_environment_page_done(struct rows_environment_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        rows_environment_done(&page->rows[i]);
    }
    free(page->rows);
    free(page->next_cursor);
    *page = (struct rows_environment_page){ .count = 0 };
}

int rows_environment_list(struct store *store, size_t limit, const char *cursor,
                          struct rows_environment_page *ret_page, struct err *err)
{
    struct rows_environment_page rows = { .count = 0 };
    struct statement s;
    struct page page;
    int result;

    if (page_init(&page, limit, cursor, err) < 0) {
        return -1;
    }
    rows.rows = alloc_zero(limit, sizeof(*rows.rows));
    store_enter(store);
    page_begin(&page, &s, store, COLUMNS, "environments");
    while (page_row(&page, &s)) {
        read_row(&s, &rows.rows[rows.count++]);
    }
    result = statement_end(&s, err);
    store_leave(store);
    rows.next_cursor = page_end(&page);
    if (result < 0) {
        rows_environment_page_done(&rows);
        return -1;
    }
    *ret_page = rows;
    return 0;
}

int rows_environment_lose(struct store *store, struct err *err)
{
    int result;

    store_enter(store);
    result =
        store_run(store, "UPDATE environments SET state = 'failed' WHERE state = 'building'", err);
    store_leave(store);
    return result;
}
