/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_token: SQL of tokens.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/store/rows_token.h"

#include "lib/store/statement.h"
#include "lib/store/store_internal.h"

int rows_token_insert(struct store *store, const struct rows_token *row, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "INSERT INTO tokens (id, name, scope, sha256, caller, created_ms, expires_ms)"
                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    statement_text(&s, 1, row->id);
    statement_text(&s, 2, row->name);
    statement_text(&s, 3, row->scope);
    statement_text(&s, 4, row->sha256);
    statement_int(&s, 5, (int64_t)row->caller);
    statement_int(&s, 6, row->created_ms);
    statement_int(&s, 7, row->expires_ms);
    result = statement_run(&s, err);
    store_leave(store);
    return result;
}

int rows_token_delete(struct store *store, const char *id, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store, "DELETE FROM tokens WHERE id = ?1");
    statement_text(&s, 1, id);
    result = statement_run(&s, err);
    store_leave(store);
    if (result == 0 && s.changes == 0) {
        return err_set(err, ERR_TOKEN_NOT_FOUND, 0, "there is no token by that id");
    }
    return result;
}

static void read_row(struct statement *s, struct rows_token *row)
{
    *row = (struct rows_token){ .caller = (uint64_t)statement_column_int(s, 4),
                                .created_ms = statement_column_int(s, 5),
                                .expires_ms = statement_column_int(s, 6) };
    statement_column_copy(s, 0, row->id, sizeof(row->id));
    statement_column_copy(s, 1, row->name, sizeof(row->name));
    statement_column_copy(s, 2, row->scope, sizeof(row->scope));
    statement_column_copy(s, 3, row->sha256, sizeof(row->sha256));
}

int rows_token_each(struct store *store, void (*visit)(void *context, const struct rows_token *row),
                    void *context, struct err *err)
{
    struct rows_token row;
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "SELECT id, name, scope, sha256, caller, created_ms, expires_ms FROM tokens"
                    " ORDER BY created_ms, id");
    while (statement_row(&s)) {
        read_row(&s, &row);
        visit(context, &row);
    }
    result = statement_end(&s, err);
    store_leave(store);
    return result;
}
