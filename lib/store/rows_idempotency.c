/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_idempotency: SQL of idempotency keys.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/store/rows_idempotency.h"

#include <stdlib.h>

#include "lib/store/statement.h"
#include "lib/store/store_internal.h"

void rows_idempotency_done(struct rows_idempotency *row)
{
    free(row->answer);
    row->answer = NULL;
}

/* Between enter and leave. 1 claimed, 0 there already, -1. */
static int claim(struct store *store, const struct rows_idempotency *row, struct err *err)
{
    struct statement s;

    statement_begin(&s, store,
                    "INSERT INTO idempotency_keys"
                    " (caller, key, request_hash, status, created_ms, expires_ms)"
                    " VALUES (?1, ?2, ?3, 0, ?4, ?5) ON CONFLICT (caller, key) DO UPDATE SET"
                    " request_hash = ?3, execution_id = NULL, status = 0, answer = NULL,"
                    " created_ms = ?4, expires_ms = ?5 WHERE expires_ms <= ?4");
    statement_int(&s, 1, (int64_t)row->caller);
    statement_text(&s, 2, row->key);
    statement_text(&s, 3, row->request_hash);
    statement_int(&s, 4, row->created_ms);
    statement_int(&s, 5, row->expires_ms);
    (void)statement_row(&s);
    return statement_end(&s, err) < 0 ? -1 : s.changes;
}

static int read_there(struct store *store, const struct rows_idempotency *row,
                      struct rows_idempotency *ret_there, struct err *err)
{
    struct rows_idempotency there = { .caller = row->caller };
    struct statement s;
    int result;

    statement_begin(&s, store,
                    "SELECT key, request_hash, execution_id, status, answer, created_ms,"
                    " expires_ms FROM idempotency_keys WHERE caller = ?1 AND key = ?2");
    statement_int(&s, 1, (int64_t)row->caller);
    statement_text(&s, 2, row->key);
    if (statement_row(&s)) {
        statement_column_copy(&s, 0, there.key, sizeof(there.key));
        statement_column_copy(&s, 1, there.request_hash, sizeof(there.request_hash));
        statement_column_copy(&s, 2, there.execution_id, sizeof(there.execution_id));
        there.status = (int)statement_column_int(&s, 3);
        there.answer = statement_column_text(&s, 4);
        there.created_ms = statement_column_int(&s, 5);
        there.expires_ms = statement_column_int(&s, 6);
    }
    result = statement_end(&s, err);
    if (result == 0) {
        *ret_there = there;
    }
    return result;
}

int rows_idempotency_claim(struct store *store, const struct rows_idempotency *row,
                           struct rows_idempotency *ret_there, struct err *err)
{
    int result;

    store_enter(store);
    result = claim(store, row, err);
    if (result == 0 && read_there(store, row, ret_there, err) < 0) {
        result = -1;
    }
    store_leave(store);
    return result;
}

int rows_idempotency_start(struct store *store, uint64_t caller, const char *key,
                           const char *execution_id, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "UPDATE idempotency_keys SET execution_id = ?3"
                    " WHERE caller = ?1 AND key = ?2");
    statement_int(&s, 1, (int64_t)caller);
    statement_text(&s, 2, key);
    statement_text(&s, 3, execution_id);
    result = statement_run(&s, err);
    store_leave(store);
    return result;
}

int rows_idempotency_finish(struct store *store, const struct rows_idempotency *row,
                            struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "UPDATE idempotency_keys SET status = ?3, answer = ?4,"
                    " execution_id = COALESCE(NULLIF(?5, ''), execution_id)"
                    " WHERE caller = ?1 AND key = ?2");
    statement_int(&s, 1, (int64_t)row->caller);
    statement_text(&s, 2, row->key);
    statement_int(&s, 3, row->status);
    statement_text(&s, 4, row->answer);
    statement_text(&s, 5, row->execution_id);
    result = statement_run(&s, err);
    store_leave(store);
    return result;
}

int rows_idempotency_release(struct store *store, uint64_t caller, const char *key, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "DELETE FROM idempotency_keys"
                    " WHERE caller = ?1 AND key = ?2 AND status = 0");
    statement_int(&s, 1, (int64_t)caller);
    statement_text(&s, 2, key);
    result = statement_run(&s, err);
    store_leave(store);
    return result;
}

int rows_idempotency_unbind(struct store *store, uint64_t caller, const char *key,
                            const char *execution_id, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "DELETE FROM idempotency_keys"
                    " WHERE caller = ?1 AND key = ?2 AND execution_id = ?3 AND status = 0");
    statement_int(&s, 1, (int64_t)caller);
    statement_text(&s, 2, key);
    statement_text(&s, 3, execution_id);
    result = statement_run(&s, err);
    store_leave(store);
    return result;
}

int rows_idempotency_lose(struct store *store, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store,
                    "UPDATE idempotency_keys SET status = ?1"
                    " WHERE status = 0 AND (execution_id IS NULL OR NOT EXISTS"
                    " (SELECT 1 FROM executions WHERE id = execution_id))");
    statement_int(&s, 1, ROWS_IDEMPOTENCY_LOST);
    result = statement_run(&s, err);
    store_leave(store);
    return result;
}

int rows_idempotency_expire(struct store *store, int64_t now_ms, struct err *err)
{
    struct statement s;
    int result;

    store_enter(store);
    statement_begin(&s, store, "DELETE FROM idempotency_keys WHERE expires_ms <= ?1");
    statement_int(&s, 1, now_ms);
    result = statement_run(&s, err);
    store_leave(store);
    return result;
}
