/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page: a list of one table, newest first, a page at a time; the table has created_ms and id.
 *
 *     struct page page;
 *     if (page_init(&page, limit, cursor, err) < 0) return -1;
 *     page_text(&page, " AND state = ?", state);
 *     store_enter(store);
 *     page_begin(&page, &s, store, COLUMNS, "sessions");
 *     while (page_row(&page, &s)) { ... statement_column_int(&s, 0) ... }
 *     result = statement_end(&s, err);
 *     store_leave(store);
 *     next_cursor = page_end(&page);
 */
#ifndef KERND_STORE_PAGE_H
#define KERND_STORE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/store/cursor.h"
#include "lib/store/statement.h"

#define PAGE_VALUES_MAX 6

struct page {
    struct buf conditions; /* " AND ..." */
    struct {
        const char *text; /* NULL: the number */
        int64_t number;
    } values[PAGE_VALUES_MAX];
    size_t value_count;
    size_t limit;
    size_t count; /* rows told */
    bool resumed;
    struct cursor last; /* where the page before ended, then the last row told */
    bool more;
};

/* cursor may be NULL: from the newest on. 0, or -1 BAD_CURSOR; then there is nothing to end. */
int page_init(struct page *page, size_t limit, const char *cursor, struct err *err);

/*
 * Adds " AND <condition>" to the statement; its one "?" is the value. Only the conditions that
 * there are become part of the statement, so that an index fits each combination. The text is
 * borrowed until statement_end; of page_text, NULL is no condition.
 */
void page_text(struct page *page, const char *condition, const char *text);
void page_int(struct page *page, const char *condition, int64_t number);

/* columns: as in SQL, at least one. */
void page_begin(struct page *page, struct statement *statement, struct store *store,
                const char *columns, const char *table);

/* The next row; false at the end of the page, or on failure. */
bool page_row(struct page *page, struct statement *statement);

/* Frees; the cursor of the next page, a fresh string, NULL when this was the last. */
char *page_end(struct page *page);

#endif
