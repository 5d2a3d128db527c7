/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statement: prepare, bind, step, read, reset.
 * Owns: the kept prepared statements of the store (finalized by store_close).
 * Threads: whoever has entered the store.
 * May include: base.
 */
#include "lib/store/statement.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/store/store_internal.h"

static void note(struct statement *statement, int code)
{
    if (statement->code == SQLITE_OK && code != SQLITE_OK && code != SQLITE_ROW &&
        code != SQLITE_DONE) {
        statement->code = code;
    }
}

static bool works(const struct statement *statement)
{
    return statement->handle != NULL && statement->code == SQLITE_OK;
}

static void prepare(struct statement *statement, const char *sql, unsigned flags)
{
    note(statement, sqlite3_prepare_v3(statement->store->connection, sql, -1, flags,
                                       &statement->handle, NULL));
}

void statement_begin(struct statement *statement, struct store *store, const char *sql)
{
    *statement = (struct statement){ .store = store, .kept = true };
    for (size_t i = 0; i < store->kept_count; i++) {
        if (store->kept[i].sql == sql) {
            statement->handle = store->kept[i].handle;
            return;
        }
    }
    if (store->kept_count == STORE_KEPT_MAX) {
        statement->kept = false;
        prepare(statement, sql, 0);
        return;
    }
    prepare(statement, sql, SQLITE_PREPARE_PERSISTENT);
    if (statement->handle != NULL) {
        store->kept[store->kept_count++] =
            (struct store_kept){ .sql = sql, .handle = statement->handle };
    }
}

void statement_begin_once(struct statement *statement, struct store *store, const char *sql)
{
    *statement = (struct statement){ .store = store };
    prepare(statement, sql, 0);
}

void statement_text(struct statement *statement, int index, const char *text)
{
    if (works(statement)) {
        note(statement, text == NULL
                            ? sqlite3_bind_null(statement->handle, index)
                            : sqlite3_bind_text(statement->handle, index, text, -1, SQLITE_STATIC));
    }
}

void statement_int(struct statement *statement, int index, int64_t value)
{
    if (works(statement)) {
        note(statement, sqlite3_bind_int64(statement->handle, index, value));
    }
}

bool statement_row(struct statement *statement)
{
    int code;

    if (!works(statement)) {
        return false;
    }
    code = sqlite3_step(statement->handle);
    note(statement, code);
    if (code == SQLITE_DONE) {
        statement->changes = sqlite3_changes(statement->store->connection);
    }
    return code == SQLITE_ROW;
}

char *statement_column_text(struct statement *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement->handle, column);

    if (text == NULL) {
        return NULL;
    }
    return alloc_copy(text, (size_t)sqlite3_column_bytes(statement->handle, column));
}

int64_t statement_column_int(struct statement *statement, int column)
{
    return sqlite3_column_int64(statement->handle, column);
}

bool statement_column_is_null(struct statement *statement, int column)
{
    return sqlite3_column_type(statement->handle, column) == SQLITE_NULL;
}

void statement_column_copy(struct statement *statement, int column, char *out, size_t size)
{
    const unsigned char *text = sqlite3_column_text(statement->handle, column);
    int wanted = snprintf(out, size, "%s", text != NULL ? (const char *)text : "");

    (void)wanted;
}

int statement_end(struct statement *statement, struct err *err)
{
    /* Before the reset, which would repeat or replace the message. */
    int result =
        statement->code == SQLITE_OK ? 0 : store_fail(statement->store, statement->code, err);

    if (statement->handle != NULL && statement->kept) {
        (void)sqlite3_reset(statement->handle);
        (void)sqlite3_clear_bindings(statement->handle);
    } else {
        (void)sqlite3_finalize(statement->handle);
    }
    statement->handle = NULL;
    return result;
}

int statement_run(struct statement *statement, struct err *err)
{
    (void)statement_row(statement);
    return statement_end(statement, err);
}

bool statement_is_conflict(const struct statement *statement)
{
    return statement->code == SQLITE_CONSTRAINT_PRIMARYKEY ||
           statement->code == SQLITE_CONSTRAINT_UNIQUE;
}
