/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statement: one use of a prepared statement, between store_enter and store_leave.
 *
 *     struct statement s;
 *     statement_begin(&s, store, sql);
 *     statement_text(&s, 1, id);
 *     while (statement_row(&s)) { ... statement_column_int(&s, 0) ... }
 *     return statement_end(&s, err);
 *
 * After a failure the calls in between do nothing; statement_end tells the first one.
 */
#ifndef KERND_STORE_STATEMENT_H
#define KERND_STORE_STATEMENT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct store;

struct statement {
    struct store *store;
    sqlite3_stmt *handle;
    bool kept;
    int code;    /* the first result that was neither OK, ROW nor DONE */
    int changes; /* rows changed, once at the end */
};

/* sql is a literal: the prepared form is kept under its address as long as the connection. */
void statement_begin(struct statement *statement, struct store *store, const char *sql);

/* sql is made up for this use. */
void statement_begin_once(struct statement *statement, struct store *store, const char *sql);

/* Parameters ?1, ?2 ... Texts are borrowed until statement_end; NULL is SQL's NULL. */
void statement_text(struct statement *statement, int index, const char *text);
void statement_int(struct statement *statement, int index, int64_t value);

/* The next row: true, or false at the end or on failure. */
bool statement_row(struct statement *statement);

/* Of the current row, 0 is the first. A fresh string (the caller frees), NULL for SQL's NULL. */
char *statement_column_text(struct statement *statement, int column);
int64_t statement_column_int(struct statement *statement, int column);

bool statement_column_is_null(struct statement *statement, int column);

/* Copies a short text, cut to size - 1 bytes; "" for SQL's NULL. */
void statement_column_copy(struct statement *statement, int column, char *out, size_t size);

/* Resets or finalizes. 0, or -1 with err when anything failed since statement_begin. */
int statement_end(struct statement *statement, struct err *err);

/* Runs one that has no rows to tell, and ends it: 0 or -1, as statement_end. */
int statement_run(struct statement *statement, struct err *err);

/* Was the failure a row that is there already (a primary key, a unique name)? */
bool statement_is_conflict(const struct statement *statement);

#endif
