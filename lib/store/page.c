/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page: the SQL that all lists have alike.
 * Owns: nothing.
 * Threads: whoever has entered the store.
 * May include: base.
 */
#include "lib/store/page.h"

#include <assert.h>

#define SQL_MAX ((size_t)2000)

int page_init(struct page *page, size_t limit, const char *cursor, struct err *err)
{
    *page = (struct page){ .limit = limit, .resumed = cursor != NULL };
    if (cursor != NULL && cursor_parse(cursor, &page->last, err) < 0) {
        return -1;
    }
    page->conditions = BUF_INIT(SQL_MAX);
    return 0;
}

void page_int(struct page *page, const char *condition, int64_t number)
{
    assert(page->value_count < PAGE_VALUES_MAX);
    page->values[page->value_count++].number = number;
    (void)buf_append_text(&page->conditions, condition);
}

void page_text(struct page *page, const char *condition, const char *text)
{
    if (text != NULL) {
        page_int(page, condition, 0);
        page->values[page->value_count - 1].text = text;
    }
}

void page_begin(struct page *page, struct statement *statement, struct store *store,
                const char *columns, const char *table)
{
    struct buf sql = BUF_INIT(SQL_MAX);
    int index = 1;

    if (page->resumed) {
        page_int(page, " AND (created_ms, id) < (?,", page->last.created_ms);
        page_text(page, " ?)", page->last.id);
    }
    /* The two columns that make the cursor come last, behind those that the caller reads. */
    (void)buf_printf(&sql,
                     "SELECT %s, created_ms, id FROM %s WHERE 1%s"
                     " ORDER BY created_ms DESC, id DESC LIMIT ?",
                     columns, table, page->conditions.size > 0 ? page->conditions.data : "");
    statement_begin_once(statement, store, sql.data);
    buf_done(&sql);
    for (size_t i = 0; i < page->value_count; i++, index++) {
        if (page->values[i].text != NULL) {
            statement_text(statement, index, page->values[i].text);
        } else {
            statement_int(statement, index, page->values[i].number);
        }
    }
    statement_int(statement, index, (int64_t)page->limit + 1);
}

bool page_row(struct page *page, struct statement *statement)
{
    int columns;

    if (!statement_row(statement)) {
        return false;
    }
    if (page->count == page->limit) {
        page->more = true;
        return false;
    }
    page->count++;
    columns = sqlite3_data_count(statement->handle);
    page->last.created_ms = statement_column_int(statement, columns - 2);
    statement_column_copy(statement, columns - 1, page->last.id, sizeof(page->last.id));
    return true;
}

char *page_end(struct page *page)
{
    buf_done(&page->conditions);
    return page->more ? cursor_format(page->last.created_ms, page->last.id) : NULL;
}
