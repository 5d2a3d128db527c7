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
#include "lib/base/cleanup.h"
#include "lib/store/rows_kernel.h"
#include "lib/store/rows_session.h"
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

static struct rows_session session(const char *id, int64_t created_ms)
{
    struct rows_session row = { .state = "ready",
                                .owned = true,
                                .caller = UINT64_MAX - 6,
                                .created_ms = created_ms,
                                .updated_ms = created_ms + 1,
                                .used_ms = created_ms + 2,
                                .expires_ms = 0 };

    (void)snprintf(row.id, sizeof(row.id), "%s", id);
    row.options = alloc_printf("{\"env\":\"%s \xe2\x98\x83\"}", id);
    row.workspace = alloc_text(id);
    return row;
}

static void add(struct rows_session row)
{
    assert_int_equal(rows_session_insert(store, &row, NULL), 0);
    rows_session_done(&row);
}

static void a_session_comes_back_whole(void **state)
{
    struct rows_session row = session("ses_1", 1000);
    struct rows_session back;
    struct err err = ERR_INIT;

    (void)state;
    strv_add_all(&row.labels, "b=2", "a=1", "b=2", "odd='\"%=_", NULL);
    row.expires_ms = 5000;
    assert_int_equal(rows_session_insert(store, &row, NULL), 0);
    assert_int_equal(rows_session_insert(store, &row, &err), -1);
    assert_int_equal(err.code, ERR_SESSION_EXISTS);
    assert_int_equal(rows_session_get(store, "ses_1", &back, NULL), 0);
    assert_string_equal(back.id, "ses_1");
    assert_string_equal(back.state, "ready");
    assert_string_equal(back.options, row.options);
    assert_string_equal(back.workspace, "ses_1");
    assert_true(back.owned);
    assert_true(back.caller == UINT64_MAX - 6);
    assert_int_equal(back.created_ms, 1000);
    assert_int_equal(back.updated_ms, 1001);
    assert_int_equal(back.used_ms, 1002);
    assert_int_equal(back.expires_ms, 5000);
    assert_int_equal(back.labels.count, 3);
    assert_string_equal(back.labels.items[0], "a=1");
    rows_session_done(&back);
    rows_session_done(&row);
    assert_int_equal(rows_session_get(store, "SES_1", &back, &err), -1);
    assert_int_equal(err.code, ERR_SESSION_NOT_FOUND);
}

static void changes_and_deletion(void **state)
{
    struct rows_session row = session("ses_1", 1000);
    struct rows_session back;
    struct err err = ERR_INIT;

    (void)state;
    strv_add(&row.labels, "a=1");
    assert_int_equal(rows_session_update(store, &row, &err), -1);
    assert_int_equal(err.code, ERR_SESSION_NOT_FOUND);
    assert_int_equal(rows_session_insert(store, &row, NULL), 0);
    (void)snprintf(row.state, sizeof(row.state), "deleting");
    strv_done(&row.labels);
    strv_add(&row.labels, "c=3");
    row.caller = 1; /* not changed by an update */
    row.used_ms = 1;
    assert_int_equal(rows_session_update(store, &row, NULL), 0);
    assert_int_equal(rows_session_get(store, "ses_1", &back, NULL), 0);
    assert_int_equal(back.used_ms, 1002); /* never goes back */
    rows_session_done(&back);
    rows_session_touch_soon(store, "ses_1", 9000, 9500);
    rows_session_touch_soon(store, "ses_1", 8000, 9600);
    rows_session_touch_soon(store, "ses_none", 1, 1);
    assert_int_equal(store_flush(store, NULL), 0);
    assert_int_equal(rows_session_get(store, "ses_1", &back, NULL), 0);
    assert_string_equal(back.state, "deleting");
    assert_int_equal(back.labels.count, 1);
    assert_string_equal(back.labels.items[0], "c=3");
    assert_true(back.caller == UINT64_MAX - 6);
    assert_int_equal(back.used_ms, 9000);
    assert_int_equal(back.expires_ms, 9600);
    rows_session_done(&back);
    rows_session_done(&row);
    assert_int_equal(rows_session_delete(store, "ses_1", NULL), 0);
    assert_int_equal(rows_session_delete(store, "ses_1", NULL), 0);
    assert_int_equal(rows_session_get(store, "ses_1", &back, NULL), -1);
}

/* Ids of all pages of this size, each followed by a space. */
static char *gather(struct rows_session_filter filter, size_t limit)
{
    struct buf out = BUF_INIT(10000);
    char *cursor = NULL;

    filter.limit = limit;
    do {
        struct rows_session_page page;

        filter.cursor = cursor;
        assert_int_equal(rows_session_list(store, &filter, &page, NULL), 0);
        assert_true(page.count <= limit);
        for (size_t i = 0; i < page.count; i++) {
            assert_int_equal(buf_printf(&out, "%s ", page.rows[i].id), 0);
        }
        free(cursor);
        cursor = page.next_cursor;
        page.next_cursor = NULL;
        rows_session_page_done(&page);
    } while (cursor != NULL);
    return out.size > 0 ? buf_take(&out, NULL) : alloc_text("");
}

static void assert_listed(struct rows_session_filter filter, const char *expected)
{
    for (size_t limit = 1; limit < 8; limit++) {
        char *got = gather(filter, limit);

        assert_string_equal(got, expected);
        free(got);
    }
}

static void lists(void **state)
{
    struct rows_session_filter bad = { .limit = 10, .cursor = "nonsense" };
    struct rows_session_page page;
    struct err err = ERR_INIT;

    (void)state;
    assert_listed((struct rows_session_filter){ .state = NULL }, "");
    for (int i = 0; i < 6; i++) {
        char id[16];
        struct rows_session row;

        (void)snprintf(id, sizeof(id), "s%d", i);
        row = session(id, 1000 + i / 2); /* pairs of the same time */
        row.caller = (uint64_t)i % 2;
        strv_add(&row.labels, i < 3 ? "team=a" : "team=b");
        strv_add(&row.labels, "all=1");
        if (i == 4) {
            (void)snprintf(row.state, sizeof(row.state), "creating");
        }
        add(row);
    }
    assert_listed((struct rows_session_filter){ .state = NULL }, "s5 s4 s3 s2 s1 s0 ");
    assert_listed((struct rows_session_filter){ .state = "creating" }, "s4 ");
    assert_listed((struct rows_session_filter){ .except = "ready" }, "s4 ");
    assert_listed((struct rows_session_filter){ .except = "creating", .label = "team=b" },
                  "s5 s3 ");
    assert_listed((struct rows_session_filter){ .label = "team=a" }, "s2 s1 s0 ");
    assert_listed((struct rows_session_filter){ .label = "team" }, "");
    assert_listed((struct rows_session_filter){ .label = "all=1", .state = "ready" },
                  "s5 s3 s2 s1 s0 ");
    assert_listed((struct rows_session_filter){ .by_caller = true, .caller = 1 }, "s5 s3 s1 ");
    assert_listed((struct rows_session_filter){ .by_caller = true, .caller = 0, .label = "team=b" },
                  "s4 ");
    assert_int_equal(rows_session_list(store, &bad, &page, &err), -1);
    assert_int_equal(err.code, ERR_BAD_CURSOR);
}

/* What comes or goes between two pages moves no row from one to the other. */
static void pages_are_stable(void **state)
{
    struct rows_session_filter filter = { .limit = 2 };
    struct rows_session_page first;
    struct rows_session_page second;

    (void)state;
    for (int i = 0; i < 4; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        add(session(id, 1000 + i));
    }
    assert_int_equal(rows_session_list(store, &filter, &first, NULL), 0);
    add(session("new", 2000));
    assert_int_equal(rows_session_delete(store, "s2", NULL), 0);
    filter.cursor = first.next_cursor;
    assert_int_equal(rows_session_list(store, &filter, &second, NULL), 0);
    assert_int_equal(second.count, 2);
    assert_string_equal(second.rows[0].id, "s1");
    assert_string_equal(second.rows[1].id, "s0");
    assert_null(second.next_cursor);
    rows_session_page_done(&first);
    rows_session_page_done(&second);
}

static void ends_of_life(void **state)
{
    struct strv ids = { .items = NULL };

    (void)state;
    for (int i = 0; i < 4; i++) {
        char id[16];
        struct rows_session row;

        (void)snprintf(id, sizeof(id), "s%d", i);
        row = session(id, 1000);
        row.expires_ms = i == 0 ? 0 : 2000 - i;
        add(row);
    }
    assert_int_equal(rows_session_expired(store, 1998, 10, &ids, NULL), 0);
    assert_int_equal(ids.count, 2);
    assert_string_equal(ids.items[0], "s3");
    assert_string_equal(ids.items[1], "s2");
    assert_int_equal(rows_session_expired(store, 9999, 1, &ids, NULL), 0);
    assert_int_equal(ids.count, 3);
    strv_done(&ids);
}

static void what_a_start_looks_for(void **state)
{
    static const char *const states[] = { "ready", "creating", "expired", "ready", "deleting" };
    CLEANUP_STRV struct strv half_done = { .items = NULL };
    CLEANUP_STRV struct strv workspaces = { .items = NULL };

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        char id[16];
        struct rows_session row;

        (void)snprintf(id, sizeof(id), "s%zu", i);
        row = session(id, 1000);
        (void)snprintf(row.state, sizeof(row.state), "%s", states[i]);
        row.owned = i != 3;
        add(row);
    }
    assert_int_equal(rows_session_half_done(store, &half_done, NULL), 0);
    assert_int_equal(half_done.count, 2);
    assert_string_equal(half_done.items[0], "s1");
    assert_string_equal(half_done.items[1], "s4");
    assert_int_equal(rows_session_workspaces(store, &workspaces, NULL), 0);
    assert_int_equal(workspaces.count, 3);
    assert_string_equal(workspaces.items[0], "s0");
    assert_string_equal(workspaces.items[1], "s1");
}

static void found_by_their_options(void **state)
{
    char id[STORE_ID_SIZE];
    bool found;

    (void)state;
    add(session("ses_1", 1));
    add(session("ses_2", 2));
    assert_int_equal(rows_session_find(store, "\"ses_2 ", id, &found, NULL), 0);
    assert_true(found);
    assert_string_equal(id, "ses_2");
    assert_int_equal(rows_session_find(store, "ses_3", id, &found, NULL), 0);
    assert_false(found);
    assert_int_equal(rows_session_delete(store, "ses_2", NULL), 0);
    assert_int_equal(rows_session_find(store, "\"ses_2 ", id, &found, NULL), 0);
    assert_false(found);
}

static void kernels(void **state)
{
    char options[] = "{}";
    char why[] = "timeout";
    struct rows_kernel row = {
        .session_id = "ses_1", .id = "k1", .language = "python", .state = "idle", .created_ms = 10
    };
    struct rows_kernel back;
    struct rows_kernel_list list;
    struct err err = ERR_INIT;

    (void)state;
    row.options = options;
    assert_int_equal(rows_kernel_insert(store, &row, &err), -1);
    assert_int_equal(err.code, ERR_SESSION_NOT_FOUND);
    add(session("ses_1", 1));
    assert_int_equal(rows_kernel_insert(store, &row, NULL), 0);
    assert_int_equal(rows_kernel_insert(store, &row, &err), -1);
    assert_int_equal(err.code, ERR_KERNEL_EXISTS);
    (void)snprintf(row.id, sizeof(row.id), "k2");
    row.created_ms = 5;
    assert_int_equal(rows_kernel_insert(store, &row, NULL), 0);
    (void)snprintf(row.state, sizeof(row.state), "dead");
    row.reason = why;
    row.cells = 7;
    row.ended_ms = 99;
    assert_int_equal(rows_kernel_update(store, &row, NULL), 0);
    assert_int_equal(rows_kernel_lose(store, "lost", 100, NULL), 0);
    assert_int_equal(rows_kernel_list(store, "ses_1", &list, NULL), 0);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.rows[0].id, "k2");
    assert_string_equal(list.rows[0].reason, "timeout");
    assert_int_equal(list.rows[0].cells, 7);
    assert_string_equal(list.rows[1].reason, "lost");
    assert_int_equal(list.rows[1].ended_ms, 100);
    rows_kernel_list_done(&list);
    assert_int_equal(rows_kernel_delete(store, "ses_1", "k2", NULL), 0);
    assert_int_equal(rows_kernel_update(store, &row, &err), -1);
    assert_int_equal(err.code, ERR_KERNEL_NOT_FOUND);
    assert_int_equal(rows_kernel_get(store, "ses_1", "k1", &back, NULL), 0);
    assert_string_equal(back.state, "dead");
    rows_kernel_done(&back);
    assert_int_equal(rows_session_delete(store, "ses_1", NULL), 0);
    assert_int_equal(rows_kernel_get(store, "ses_1", "k1", &back, &err), -1);
    assert_int_equal(err.code, ERR_KERNEL_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_session_comes_back_whole, open_store, close_store),
        cmocka_unit_test_setup_teardown(changes_and_deletion, open_store, close_store),
        cmocka_unit_test_setup_teardown(lists, open_store, close_store),
        cmocka_unit_test_setup_teardown(pages_are_stable, open_store, close_store),
        cmocka_unit_test_setup_teardown(ends_of_life, open_store, close_store),
        cmocka_unit_test_setup_teardown(what_a_start_looks_for, open_store, close_store),
        cmocka_unit_test_setup_teardown(found_by_their_options, open_store, close_store),
        cmocka_unit_test_setup_teardown(kernels, open_store, close_store),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
