/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/store/rows_environment.h"
#include "lib/store/rows_execution.h"
#include "lib/store/rows_idempotency.h"
#include "lib/store/rows_snapshot.h"
#include "lib/store/rows_token.h"
#include "tests/unit/scratch.h"

static struct store *store;

static int open_store(void **state)
{
    return scratch_fresh(state) < 0 ? -1 : store_open(scratch_path, &store, NULL);
}

static int close_store(void **state)
{
    (void)state;
    store_close(store);
    store = NULL;
    return 0;
}

static struct rows_execution execution(int number)
{
    struct rows_execution row = { .kind = "runCode",
                                  .state = "queued",
                                  .caller = (uint64_t)number % 2,
                                  .created_ms = 1000 + number };

    (void)snprintf(row.id, sizeof(row.id), "exe_%d", number);
    if (number % 3 == 0) {
        (void)snprintf(row.session_id, sizeof(row.session_id), "ses_1");
    }
    return row;
}

static void an_execution_comes_back_whole(void **state)
{
    char summary[] = "{\"stdout\":\"\xe2\x98\x83\"}";
    struct rows_execution row = execution(0);
    struct rows_execution back;
    struct err err = ERR_INIT;

    (void)state;
    rows_execution_put_soon(store, &row);
    assert_int_equal(rows_execution_get(store, "exe_0", &back, NULL), 0);
    assert_string_equal(back.state, "queued");
    assert_string_equal(back.session_id, "ses_1");
    assert_string_equal(back.kernel_id, "");
    assert_string_equal(back.fault, "");
    assert_false(back.has_exit_code);
    assert_null(back.summary);
    rows_execution_done(&back);
    (void)snprintf(row.state, sizeof(row.state), "done");
    (void)snprintf(row.fault, sizeof(row.fault), "oom");
    memset(row.code_sha256, 'a', 64);
    row.code_size = (uint64_t)1 << 40;
    row.has_exit_code = true;
    row.exit_code = 0;
    row.started_ms = 1005;
    row.finished_ms = 1010;
    row.summary = summary;
    rows_execution_put_soon(store, &row);
    assert_int_equal(rows_execution_get(store, "exe_0", &back, NULL), 0);
    assert_string_equal(back.state, "done");
    assert_string_equal(back.fault, "oom");
    assert_string_equal(back.code_sha256, row.code_sha256);
    assert_true(back.code_size == row.code_size);
    assert_true(back.has_exit_code);
    assert_int_equal(back.exit_code, 0);
    assert_int_equal(back.created_ms, 1000);
    assert_int_equal(back.started_ms, 1005);
    assert_int_equal(back.finished_ms, 1010);
    assert_string_equal(back.summary, summary);
    rows_execution_done(&back);
    assert_int_equal(rows_execution_insert(store, &row, &err), -1);
    assert_int_equal(err.code, ERR_EXECUTION_EXISTS);
    assert_int_equal(rows_execution_get(store, "exe_none", &back, &err), -1);
    assert_int_equal(err.code, ERR_EXECUTION_NOT_FOUND);
}

static void assert_listed(struct rows_execution_filter filter, const char *expected)
{
    for (filter.limit = 1; filter.limit < 12; filter.limit++) {
        struct buf out = BUF_INIT(10000);
        char *cursor = NULL;

        do {
            struct rows_execution_page page;

            filter.cursor = cursor;
            assert_int_equal(rows_execution_list(store, &filter, &page, NULL), 0);
            for (size_t i = 0; i < page.count; i++) {
                assert_int_equal(buf_printf(&out, "%s ", page.rows[i].id + 4), 0);
            }
            free(cursor);
            cursor = page.next_cursor;
            page.next_cursor = NULL;
            rows_execution_page_done(&page);
        } while (cursor != NULL);
        assert_string_equal(out.size > 0 ? out.data : "", expected);
        buf_done(&out);
    }
}

static void lists_and_losses(void **state)
{
    struct rows_execution back;
    size_t count = 0;

    (void)state;
    for (int i = 0; i < 10; i++) {
        struct rows_execution row = execution(i);

        if (i % 2 == 0) {
            (void)snprintf(row.state, sizeof(row.state), "done");
        }
        rows_execution_put_soon(store, &row);
    }
    assert_listed((struct rows_execution_filter){ .state = NULL }, "9 8 7 6 5 4 3 2 1 0 ");
    assert_listed((struct rows_execution_filter){ .session_id = "ses_1" }, "9 6 3 0 ");
    assert_listed((struct rows_execution_filter){ .state = "queued" }, "9 7 5 3 1 ");
    assert_listed((struct rows_execution_filter){ .session_id = "ses_1", .state = "done" }, "6 0 ");
    assert_listed((struct rows_execution_filter){ .by_caller = true, .caller = 0 }, "8 6 4 2 0 ");
    assert_int_equal(rows_execution_lose(store, 5000, &count, NULL), 0);
    assert_int_equal(count, 5);
    assert_int_equal(rows_execution_get(store, "exe_9", &back, NULL), 0);
    assert_string_equal(back.state, "done");
    assert_string_equal(back.fault, "lost");
    assert_int_equal(back.finished_ms, 5000);
    rows_execution_done(&back);
    assert_int_equal(rows_execution_lose(store, 5000, &count, NULL), 0);
    assert_int_equal(count, 0);
}

static void expiry_of_executions(void **state)
{
    size_t count = 0;

    (void)state;
    for (int i = 0; i < 10; i++) {
        struct rows_execution row = execution(i);

        (void)snprintf(row.state, sizeof(row.state), i == 1 ? "running" : "done");
        assert_int_equal(rows_execution_insert(store, &row, NULL), 0);
    }
    assert_int_equal(rows_execution_expire(store, 1003, 100, &count, NULL), 0);
    assert_int_equal(count, 2);
    assert_listed((struct rows_execution_filter){ .state = NULL }, "9 8 7 6 5 4 3 1 ");
    assert_int_equal(rows_execution_expire(store, 0, 4, &count, NULL), 0);
    assert_listed((struct rows_execution_filter){ .state = NULL }, "9 8 7 6 1 ");
}

static void idempotency(void **state)
{
    struct rows_idempotency ask = { .caller = 1,
                                    .key = "k\xc3\xa9y '",
                                    .request_hash = "hash",
                                    .created_ms = 1000,
                                    .expires_ms = 2000 };
    struct rows_idempotency there = { .status = -1 };
    char answer[] = "{\"id\":1}";

    (void)state;
    assert_int_equal(rows_idempotency_claim(store, &ask, &there, NULL), 1);
    assert_int_equal(rows_idempotency_claim(store, &ask, &there, NULL), 0);
    assert_int_equal(there.status, 0);
    assert_string_equal(there.request_hash, "hash");
    assert_string_equal(there.execution_id, "");
    assert_null(there.answer);
    assert_int_equal(rows_idempotency_start(store, 1, ask.key, "exe_1", NULL), 0);
    ask.status = 201;
    ask.answer = answer;
    assert_int_equal(rows_idempotency_finish(store, &ask, NULL), 0);
    assert_int_equal(rows_idempotency_release(store, 1, ask.key, NULL), 0); /* it is finished */
    assert_int_equal(rows_idempotency_claim(store, &ask, &there, NULL), 0);
    assert_int_equal(there.status, 201);
    assert_string_equal(there.execution_id, "exe_1");
    assert_string_equal(there.answer, answer);
    rows_idempotency_done(&there);
    ask.caller = 2; /* somebody else's key of the same name */
    assert_int_equal(rows_idempotency_claim(store, &ask, &there, NULL), 1);
    assert_int_equal(rows_idempotency_release(store, 2, ask.key, NULL), 0);
    assert_int_equal(rows_idempotency_claim(store, &ask, &there, NULL), 1);
    ask.caller = 1; /* the old claim has run out */
    ask.created_ms = 2000;
    ask.expires_ms = 3000;
    assert_int_equal(rows_idempotency_claim(store, &ask, &there, NULL), 1);
    assert_int_equal(rows_idempotency_claim(store, &ask, &there, NULL), 0);
    assert_int_equal(there.status, 0);
    assert_int_equal(there.expires_ms, 3000);
    assert_int_equal(rows_idempotency_expire(store, 3000, NULL), 0);
    assert_int_equal(rows_idempotency_claim(store, &ask, &there, NULL), 1);
}

/* After a crash: a claim whose execution has a row is told by it, any other is lost. */
static void idempotency_after_a_crash(void **state)
{
    static const char *const keys[] = { "nothing", "no row", "row" };
    struct rows_execution row = execution(1);
    struct rows_idempotency there;

    (void)state;
    rows_execution_put_soon(store, &row);
    assert_int_equal(store_flush(store, NULL), 0);
    for (size_t i = 0; i < 3; i++) {
        struct rows_idempotency ask = { .caller = 1, .request_hash = "h", .expires_ms = 2000 };

        (void)snprintf(ask.key, sizeof(ask.key), "%s", keys[i]);
        assert_int_equal(rows_idempotency_claim(store, &ask, &there, NULL), 1);
    }
    assert_int_equal(rows_idempotency_start(store, 1, "no row", "exe_99", NULL), 0);
    assert_int_equal(rows_idempotency_start(store, 1, "row", "exe_1", NULL), 0);
    assert_int_equal(rows_idempotency_lose(store, NULL), 0);
    for (size_t i = 0; i < 3; i++) {
        struct rows_idempotency ask = { .caller = 1, .request_hash = "h", .expires_ms = 2000 };

        (void)snprintf(ask.key, sizeof(ask.key), "%s", keys[i]);
        assert_int_equal(rows_idempotency_claim(store, &ask, &there, NULL), 0);
        assert_int_equal(there.status, i == 2 ? 0 : ROWS_IDEMPOTENCY_LOST);
    }
    assert_int_equal(rows_idempotency_unbind(store, 1, "row", "exe_2", NULL), 0);
    assert_int_equal(rows_idempotency_unbind(store, 1, "no row", "exe_99", NULL), 0);
    {
        struct rows_idempotency ask = {
            .caller = 1, .key = "row", .request_hash = "h", .expires_ms = 2000
        };

        assert_int_equal(rows_idempotency_claim(store, &ask, &there, NULL), 0);
        assert_int_equal(rows_idempotency_unbind(store, 1, "row", "exe_1", NULL), 0);
        assert_int_equal(rows_idempotency_claim(store, &ask, &there, NULL), 1);
    }
}

static void add_snapshot(const char *id, const char *name, char digit, int64_t created_ms)
{
    char labels[] = "{}";
    struct rows_snapshot row = {
        .session_id = "ses_1", .bytes = 100, .entries = 3, .created_ms = created_ms
    };

    (void)snprintf(row.id, sizeof(row.id), "%s", id);
    (void)snprintf(row.name, sizeof(row.name), "%s", name);
    memset(row.digest, digit, 64);
    row.labels = labels;
    assert_int_equal(rows_snapshot_insert(store, &row, NULL), 0);
}

static void snapshots_in_place_of_others(void **state)
{
    struct rows_snapshot row;
    struct rows_snapshot old;
    struct err err = ERR_INIT;

    (void)state;
    add_snapshot("snp_old", "kept", 'a', 1);
    add_snapshot("snp_other", "other", 'b', 2);
    add_snapshot("snp_first", "", 'b', 3);
    add_snapshot("snp_second", "", 'b', 4);
    assert_int_equal(rows_snapshot_get(store, "kept", &row, NULL), 0);
    (void)snprintf(row.id, sizeof(row.id), "snp_new");
    row.bytes = 7;
    assert_int_equal(rows_snapshot_replace(store, "snp_old", &row, NULL), 0);
    rows_snapshot_done(&row);
    assert_int_equal(rows_snapshot_get(store, "snp_old", &row, NULL), -1);
    assert_int_equal(rows_snapshot_get(store, "kept", &row, NULL), 0);
    assert_int_equal(row.bytes, 7);
    /* A name that is another's: nothing changes. */
    (void)snprintf(row.name, sizeof(row.name), "other");
    (void)snprintf(row.id, sizeof(row.id), "snp_newer");
    assert_int_equal(rows_snapshot_replace(store, "snp_new", &row, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    rows_snapshot_done(&row);
    assert_int_equal(rows_snapshot_get(store, "snp_new", &row, NULL), 0);
    rows_snapshot_done(&row);
    assert_int_equal(rows_snapshot_oldest(store, 100, &old, NULL), 0);
    assert_string_equal(old.id, "snp_first");
    rows_snapshot_done(&old);
    assert_int_equal(rows_snapshot_oldest(store, 3, &old, &err), -1);
    assert_int_equal(err.code, ERR_SNAPSHOT_NOT_FOUND);
}

static void snapshots(void **state)
{
    struct rows_snapshot_filter filter = { .limit = 2, .session_id = "ses_1" };
    struct rows_snapshot_page page;
    struct rows_snapshot row;
    struct err err = ERR_INIT;
    uint64_t total = 0;
    bool used = false;

    (void)state;
    add_snapshot("snp_1", "", 'a', 1);
    add_snapshot("snp_2", "base", 'a', 2);
    add_snapshot("snp_3", "snp_1", 'b', 3); /* named like another one's id */
    assert_int_equal(rows_snapshot_get(store, "base", &row, NULL), 0);
    assert_string_equal(row.id, "snp_2");
    assert_int_equal(rows_snapshot_insert(store, &row, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    rows_snapshot_done(&row);
    assert_int_equal(rows_snapshot_get(store, "snp_1", &row, NULL), 0);
    assert_string_equal(row.id, "snp_1");
    assert_int_equal(rows_snapshot_total(store, false, &total, NULL), 0);
    assert_int_equal(total, 200);
    assert_int_equal(rows_snapshot_delete(store, &row, &used, NULL), 0);
    assert_true(used);
    rows_snapshot_done(&row);
    add_snapshot("snp_4", "", 'c', 4);
    assert_int_equal(rows_snapshot_total(store, false, &total, NULL), 0);
    assert_int_equal(total, 300);
    assert_int_equal(rows_snapshot_total(store, true, &total, NULL), 0);
    assert_int_equal(total, 200);
    assert_int_equal(rows_snapshot_get(store, "snp_2", &row, NULL), 0);
    assert_int_equal(rows_snapshot_delete(store, &row, &used, NULL), 0);
    assert_false(used);
    assert_int_equal(rows_snapshot_has_digest(store, row.digest, &used, NULL), 0);
    assert_false(used);
    rows_snapshot_done(&row);
    assert_int_equal(rows_snapshot_get(store, "snp_2", &row, &err), -1);
    assert_int_equal(err.code, ERR_SNAPSHOT_NOT_FOUND);
    add_snapshot("snp_5", "", 'd', 5);
    assert_int_equal(rows_snapshot_list(store, &filter, &page, NULL), 0);
    assert_int_equal(page.count, 2);
    assert_string_equal(page.rows[0].id, "snp_5");
    assert_string_equal(page.next_cursor, "4.snp_4");
    rows_snapshot_page_done(&page);
    filter.cursor = "4.snp_4";
    assert_int_equal(rows_snapshot_list(store, &filter, &page, NULL), 0);
    assert_int_equal(page.count, 1);
    assert_null(page.next_cursor);
    rows_snapshot_page_done(&page);
}

static void environments(void **state)
{
    char spec[] = "{}";
    struct rows_environment row = {
        .id = "env_1", .name = "data", .state = "building", .created_ms = 1
    };
    struct rows_environment back;
    struct rows_environment_page list;
    struct rows_environment_page rest;
    struct err err = ERR_INIT;

    (void)state;
    row.spec = spec;
    assert_int_equal(rows_environment_insert(store, &row, NULL), 0);
    assert_int_equal(rows_environment_insert(store, &row, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    row.bytes = 77;
    (void)snprintf(row.execution_id, sizeof(row.execution_id), "exe_1");
    assert_int_equal(rows_environment_update(store, &row, NULL), 0);
    assert_int_equal(rows_environment_lose(store, NULL), 0);
    assert_int_equal(rows_environment_get(store, "data", &back, NULL), 0);
    assert_string_equal(back.state, "failed");
    assert_string_equal(back.execution_id, "exe_1");
    assert_int_equal(back.bytes, 77);
    rows_environment_done(&back);
    (void)snprintf(row.id, sizeof(row.id), "env_2");
    assert_int_equal(rows_environment_update(store, &row, &err), -1);
    assert_int_equal(err.code, ERR_ENVIRONMENT_NOT_FOUND);
    row.name[0] = '\0';
    row.created_ms = 2;
    assert_int_equal(rows_environment_insert(store, &row, NULL), 0);
    assert_int_equal(rows_environment_list(store, 1000, NULL, &list, NULL), 0);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.rows[0].id, "env_2");
    rows_environment_page_done(&list);
    assert_int_equal(rows_environment_list(store, 1, NULL, &list, NULL), 0);
    assert_int_equal(list.count, 1);
    assert_int_equal(rows_environment_list(store, 1, list.next_cursor, &rest, NULL), 0);
    assert_string_equal(rest.rows[0].id, "env_1");
    assert_null(rest.next_cursor);
    rows_environment_page_done(&rest);
    rows_environment_page_done(&list);
    assert_int_equal(rows_environment_list(store, 1, "x", &list, &err), -1);
    assert_int_equal(err.code, ERR_BAD_CURSOR);
    assert_int_equal(rows_environment_delete(store, "env_2", NULL), 0);
    assert_int_equal(rows_environment_get(store, "env_2", &back, &err), -1);
    assert_int_equal(err.code, ERR_ENVIRONMENT_NOT_FOUND);
}

static void count_token(void *context, const struct rows_token *row)
{
    struct rows_token *last = context;

    *last = *row;
}

static void tokens(void **state)
{
    struct rows_token row = { .id = "tok_1",
                              .name = "agent",
                              .scope = "run",
                              .sha256 = "ab",
                              .caller = UINT64_MAX,
                              .created_ms = 1,
                              .expires_ms = 2 };
    struct rows_token back = { .id = "" };
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(rows_token_insert(store, &row, NULL), 0);
    assert_int_equal(rows_token_insert(store, &row, NULL), -1);
    assert_int_equal(rows_token_each(store, count_token, &back, NULL), 0);
    assert_string_equal(back.name, "agent");
    assert_string_equal(back.scope, "run");
    assert_string_equal(back.sha256, "ab");
    assert_true(back.caller == UINT64_MAX);
    assert_int_equal(back.expires_ms, 2);
    assert_int_equal(rows_token_delete(store, "tok_1", NULL), 0);
    assert_int_equal(rows_token_delete(store, "tok_1", &err), -1);
    assert_int_equal(err.code, ERR_TOKEN_NOT_FOUND);
    (void)snprintf(row.scope, sizeof(row.scope), "root");
    assert_int_equal(rows_token_insert(store, &row, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_execution_comes_back_whole, open_store, close_store),
        cmocka_unit_test_setup_teardown(lists_and_losses, open_store, close_store),
        cmocka_unit_test_setup_teardown(expiry_of_executions, open_store, close_store),
        cmocka_unit_test_setup_teardown(idempotency, open_store, close_store),
        cmocka_unit_test_setup_teardown(idempotency_after_a_crash, open_store, close_store),
        cmocka_unit_test_setup_teardown(snapshots_in_place_of_others, open_store, close_store),
        cmocka_unit_test_setup_teardown(snapshots, open_store, close_store),
        cmocka_unit_test_setup_teardown(environments, open_store, close_store),
        cmocka_unit_test_setup_teardown(tokens, open_store, close_store),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
