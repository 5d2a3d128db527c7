/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_execution: SQL of executions.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/store/rows_execution.h"

#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/container.h"
#include "lib/base/text.h"
#include "lib/store/page.h"
#include "lib/store/statement.h"
#include "lib/store/store_internal.h"
#include "lib/store/writer.h"

#define COLUMNS                                                                            \
    "id, session_id, kernel_id, kind, state, caller, created_ms, started_ms, finished_ms," \
    " code_size, code_sha256, exit_code, fault, summary"
#define INSERT                                                                             \
    "INSERT INTO executions (" COLUMNS ") VALUES (?1, NULLIF(?2, ''), NULLIF(?3, ''), ?4," \
    " ?5, ?6, ?7, ?8, ?9, ?10, NULLIF(?11, ''), ?12, NULLIF(?13, ''), ?14)"
#define EXPIRE_BATCH 250

void rows_execution_done(struct rows_execution *row)
{
    free(row->summary);
    *row = (struct rows_execution){ .summary = NULL };
}

static void bind_row(struct statement *s, const struct rows_execution *row)
{
    statement_text(s, 1, row->id);
    statement_text(s, 2, row->session_id);
    statement_text(s, 3, row->kernel_id);
    statement_text(s, 4, row->kind);
    statement_text(s, 5, row->state);
    statement_int(s, 6, (int64_t)row->caller);
    statement_int(s, 7, row->created_ms);
    statement_int(s, 8, row->started_ms);
    statement_int(s, 9, row->finished_ms);
    statement_int(s, 10, (int64_t)row->code_size);
    statement_text(s, 11, row->code_sha256);
    if (row->has_exit_code) { /* else it stays unbound, which is NULL */
        statement_int(s, 12, row->exit_code);
    }
    statement_text(s, 13, row->fault);
    statement_text(s, 14, row->summary);
}

static void read_row(struct statement *s, struct rows_execution *row)
{
    *row = (struct rows_execution){ .summary = NULL };
    statement_column_copy(s, 0, row->id, sizeof(row->id));
    statement_column_copy(s, 1, row->session_id, sizeof(row->session_id));
    statement_column_copy(s, 2, row->kernel_id, sizeof(row->kernel_id));
    statement_column_copy(s, 3, row->kind, sizeof(row->kind));
    statement_column_copy(s, 4, row->state, sizeof(row->state));
    row->caller = (uint64_t)statement_column_int(s, 5);
    row->created_ms = statement_column_int(s, 6);
    row->started_ms = statement_column_int(s, 7);
    row->finished_ms = statement_column_int(s, 8);
    row->code_size = (uint64_t)statement_column_int(s, 9);
    statement_column_copy(s, 10, row->code_sha256, sizeof(row->code_sha256));
    row->has_exit_code = !statement_column_is_null(s, 11);
    row->exit_code = (int)statement_column_int(s, 11);
    statement_column_copy(s, 12, row->fault, sizeof(row->fault));
    row->summary = statement_column_text(s, 13);
}

int rows_execution_insert(struct store *store, const struct rows_execution *row, struct err *err)
{
    struct statement s;
    bool conflict;
    int result;

    store_enter(store);
    statement_begin(&s, store, INSERT);
    bind_row(&s, row);
    (void)statement_row(&s);
    conflict = statement_is_conflict(&s);
    result = statement_end(&s, err);
    store_leave(store);
    if (conflict) {
        return err_set(err, ERR_EXECUTION_EXISTS, 0, "an execution by that id exists");
    }
    return result;
}

struct put {
    struct writer_job job;
    struct rows_execution row;
};

static int put_write(struct store *store, struct writer_job *job, struct err *err)
{
    const struct put *put = CONTAINER_OF(job, struct put, job);
    struct statement s;

    statement_begin(&s, store,
                    INSERT " ON CONFLICT (id) DO UPDATE SET state = ?5, started_ms = ?8,"
                           " finished_ms = ?9, code_size = ?10, code_sha256 = NULLIF(?11, ''),"
                           " exit_code = ?12, fault = NULLIF(?13, ''), summary = ?14");
    bind_row(&s, &put->row);
    return statement_run(&s, err);
}

static void put_drop(struct writer_job *job)
{
    struct put *put = CONTAINER_OF(job, struct put, job);

    rows_execution_done(&put->row);
    free(put);
}

int rows_execution_remove(struct store *store, const char *id, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store, "DELETE FROM executions WHERE id = ?1");
    statement_text(&s, 1, id);
    result = statement_run(&s, err);
    store_leave(store);
    return result;
}

void rows_execution_put_soon(struct store *store, const struct rows_execution *row)
{
    struct put *put = alloc_zero(1, sizeof(*put));

    put->job = (struct writer_job){ .write = put_write, .drop = put_drop };
    put->row = *row;
    put->job.row = put->row.id;
    put->row.summary = alloc_text(row->summary);
    writer_submit(store->writer, &put->job);
}

int rows_execution_get(struct store *store, const char *id, struct rows_execution *ret_row,
                       struct err *err)
{
    struct rows_execution row = { .summary = NULL };
    struct statement s;
    bool found;
    int result;

    (void)store_flush(store, NULL); /* what can't be written now is told by store_check */
    store_enter(store);
    statement_begin(&s, store, "SELECT " COLUMNS " FROM executions WHERE id = ?1");
    statement_text(&s, 1, id);
    found = statement_row(&s);
    if (found) {
        read_row(&s, &row);
    }
    result = statement_end(&s, err);
    store_leave(store);
    if (result == 0 && !found) {
        return err_set(err, ERR_EXECUTION_NOT_FOUND, 0, "there is no execution by that id");
    }
    if (result == 0) {
        *ret_row = row;
    }
    return result;
}

void rows_execution_page_done(struct rows_execution_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        rows_execution_done(&page->rows[i]);
    }
    free(page->rows);
    free(page->next_cursor);
    *page = (struct rows_execution_page){ .count = 0 };
}

int rows_execution_list(struct store *store, const struct rows_execution_filter *filter,
                        struct rows_execution_page *ret_page, struct err *err)
{
    /* The second half is what lets the index of the few that are not done serve (partial indexes).
     */
    static const char alive[] = " AND state = ? AND state <> 'done'";
    struct rows_execution_page rows = { .count = 0 };
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
    page_text(&page, text_equal(filter->state, "done") ? " AND state = ?" : alive, filter->state);
    (void)store_flush(store, NULL);
    rows.rows = alloc_zero(filter->limit, sizeof(*rows.rows));
    store_enter(store);
    page_begin(&page, &s, store, COLUMNS, "executions");
    while (page_row(&page, &s)) {
        read_row(&s, &rows.rows[rows.count++]);
    }
    result = statement_end(&s, err);
    store_leave(store);
    rows.next_cursor = page_end(&page);
    if (result < 0) {
        rows_execution_page_done(&rows);
        return -1;
    }
    *ret_page = rows;
    return 0;
}

int rows_execution_lose(struct store *store, int64_t now_ms, size_t *ret_count, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin_once(&s, store,
                         "UPDATE executions SET state = 'done', fault = 'lost', finished_ms = ?1"
                         " WHERE state <> 'done'");
    statement_int(&s, 1, now_ms);
    result = statement_run(&s, err);
    store_leave(store);
    if (result == 0) {
        *ret_count = (size_t)s.changes;
    }
    return result;
}

int rows_execution_expire(struct store *store, int64_t before_ms, uint64_t keep_max,
                          size_t *ret_count, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "DELETE FROM executions WHERE id IN ("
                    "SELECT id FROM executions WHERE state = 'done' AND (created_ms < ?1 OR"
                    " created_ms < (SELECT created_ms FROM executions"
                    " ORDER BY created_ms DESC, id DESC LIMIT 1 OFFSET ?2))"
                    " ORDER BY created_ms, id LIMIT ?3)");
    statement_int(&s, 1, before_ms);
    statement_int(&s, 2, keep_max > INT64_MAX ? INT64_MAX : (int64_t)keep_max - 1);
    statement_int(&s, 3, EXPIRE_BATCH);
    result = statement_run(&s, err);
    store_leave(store);
    if (result == 0) {
        *ret_count = (size_t)s.changes;
    }
    return result;
}
