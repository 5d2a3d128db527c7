/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_kernel: SQL of kernels.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/store/rows_kernel.h"

#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/store/statement.h"
#include "lib/store/store_internal.h"

#define COLUMNS "session_id, id, language, state, reason, options, cells, created_ms, ended_ms"
#define LIST_MAX 1000

void rows_kernel_done(struct rows_kernel *row)
{
    free(row->reason);
    free(row->options);
    *row = (struct rows_kernel){ .reason = NULL };
}

static void read_row(struct statement *s, struct rows_kernel *row)
{
    *row = (struct rows_kernel){ .reason = statement_column_text(s, 4),
                                 .options = statement_column_text(s, 5),
                                 .cells = (uint64_t)statement_column_int(s, 6),
                                 .created_ms = statement_column_int(s, 7),
                                 .ended_ms = statement_column_int(s, 8) };
    statement_column_copy(s, 0, row->session_id, sizeof(row->session_id));
    statement_column_copy(s, 1, row->id, sizeof(row->id));
    statement_column_copy(s, 2, row->language, sizeof(row->language));
    statement_column_copy(s, 3, row->state, sizeof(row->state));
}

static int not_found(struct err *err)
{
    return err_set(err, ERR_KERNEL_NOT_FOUND, 0, "there is no kernel by that id");
}

int rows_kernel_insert(struct store *store, const struct rows_kernel *row, struct err *err)
{
    struct statement s;
    int code;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "INSERT INTO kernels (" COLUMNS ")"
                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
    statement_text(&s, 1, row->session_id);
    statement_text(&s, 2, row->id);
    statement_text(&s, 3, row->language);
    statement_text(&s, 4, row->state);
    statement_text(&s, 5, row->reason);
    statement_text(&s, 6, row->options);
    statement_int(&s, 7, (int64_t)row->cells);
    statement_int(&s, 8, row->created_ms);
    statement_int(&s, 9, row->ended_ms);
    (void)statement_row(&s);
    code = s.code;
    result = statement_end(&s, err);
    store_leave(store);
    if (code == SQLITE_CONSTRAINT_PRIMARYKEY) {
        return err_set(err, ERR_KERNEL_EXISTS, 0, "a kernel by that id exists in this session");
    }
    if (code == SQLITE_CONSTRAINT_FOREIGNKEY) {
        return err_set(err, ERR_SESSION_NOT_FOUND, 0, "there is no session by that id");
    }
    return result;
}

int rows_kernel_update(struct store *store, const struct rows_kernel *row, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "UPDATE kernels SET state = ?3, reason = ?4, cells = ?5, ended_ms = ?6"
                    " WHERE session_id = ?1 AND id = ?2");
    statement_text(&s, 1, row->session_id);
    statement_text(&s, 2, row->id);
    statement_text(&s, 3, row->state);
    statement_text(&s, 4, row->reason);
    statement_int(&s, 5, (int64_t)row->cells);
    statement_int(&s, 6, row->ended_ms);
    result = statement_run(&s, err);
    store_leave(store);
    return result == 0 && s.changes == 0 ? not_found(err) : result;
}

int rows_kernel_get(struct store *store, const char *session_id, const char *id,
                    struct rows_kernel *ret_row, struct err *err)
{
    struct rows_kernel row = { .reason = NULL };
    struct statement s;
    bool found;
    int result;

    store_enter(store);
    statement_begin(&s, store, "SELECT " COLUMNS " FROM kernels WHERE session_id = ?1 AND id = ?2");
    statement_text(&s, 1, session_id);
    statement_text(&s, 2, id);
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

void rows_kernel_list_done(struct rows_kernel_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        rows_kernel_done(&list->rows[i]);
    }
    free(list->rows);
    *list = (struct rows_kernel_list){ .count = 0 };
}

int rows_kernel_list(struct store *store, const char *session_id, struct rows_kernel_list *ret_list,
                     struct err *err)
{
    struct rows_kernel_list list = { .count = 0 };
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "SELECT * FROM (SELECT " COLUMNS " FROM kernels WHERE session_id = ?1"
                    " ORDER BY created_ms DESC, id DESC LIMIT ?2) ORDER BY created_ms, id");
    statement_text(&s, 1, session_id);
    statement_int(&s, 2, LIST_MAX);
    while (statement_row(&s)) {
        list.rows = alloc_resize(list.rows, list.count + 1, sizeof(*list.rows));
        read_row(&s, &list.rows[list.count++]);
    }
    result = statement_end(&s, err);
    store_leave(store);
    if (result < 0) {
        rows_kernel_list_done(&list);
        return -1;
    }
    *ret_list = list;
    return 0;
}

int rows_kernel_delete(struct store *store, const char *session_id, const char *id, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store, "DELETE FROM kernels WHERE session_id = ?1 AND id = ?2");
    statement_text(&s, 1, session_id);
    statement_text(&s, 2, id);
    result = statement_run(&s, err);
    store_leave(store);
    return result;
}

int rows_kernel_lose(struct store *store, const char *reason, int64_t now_ms, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin_once(&s, store,
                         "UPDATE kernels SET state = 'dead', reason = ?1, ended_ms = ?2"
                         " WHERE state <> 'dead'");
    statement_text(&s, 1, reason);
    statement_int(&s, 2, now_ms);
    result = statement_run(&s, err);
    store_leave(store);
    return result;
}
