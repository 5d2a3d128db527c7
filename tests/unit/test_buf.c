/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

static void appends_end_in_a_nul(void **state)
{
    CLEANUP_BUF struct buf buf = BUF_INIT(100);

    (void)state;
    assert_int_equal(buf_append(&buf, "a\0b", 3), 0);
    assert_int_equal(buf_append_text(&buf, "cd"), 0);
    assert_int_equal(buf_printf(&buf, "%d", 42), 0);
    assert_int_equal(buf.size, 7);
    assert_memory_equal(buf.data, "a\0bcd42", 8);
}

static void the_maximum_holds_exactly(void **state)
{
    CLEANUP_BUF struct buf buf = BUF_INIT(5);

    (void)state;
    assert_int_equal(buf_append_text(&buf, "12345"), 0);
    assert_int_equal(buf_append_text(&buf, ""), 0);
    assert_int_equal(buf_append_text(&buf, "6"), -1);
    assert_int_equal(buf_printf(&buf, "%d", 6), -1);
    assert_null(buf_reserve(&buf, 1));
    assert_string_equal(buf.data, "12345");
    assert_true(buf.capacity <= 6);
}

static void an_append_is_all_or_nothing(void **state)
{
    CLEANUP_BUF struct buf buf = BUF_INIT(5);

    (void)state;
    assert_int_equal(buf_append_text(&buf, "123"), 0);
    assert_int_equal(buf_append_text(&buf, "456"), -1);
    assert_int_equal(buf_printf(&buf, "%s", "456"), -1);
    assert_string_equal(buf.data, "123");
    assert_int_equal(buf_append_some(&buf, "456", 3), 2);
    assert_string_equal(buf.data, "12345");
    assert_int_equal(buf_append_some(&buf, "6", 1), 0);
}

static void nothing_fits_in_a_maximum_of_zero(void **state)
{
    CLEANUP_BUF struct buf buf = BUF_INIT(0);

    (void)state;
    assert_int_equal(buf_append(&buf, NULL, 0), 0);
    assert_int_equal(buf_append_text(&buf, "x"), -1);
    assert_int_equal(buf_append_some(&buf, "x", 1), 0);
    assert_int_equal(buf.size, 0);
}

static void impossible_sizes_are_refused(void **state)
{
    CLEANUP_BUF struct buf buf = BUF_INIT(SIZE_MAX);

    (void)state;
    assert_int_equal(buf_append_text(&buf, "x"), 0);
    assert_null(buf_reserve(&buf, SIZE_MAX));
    assert_null(buf_reserve(&buf, SIZE_MAX - 1));
    assert_string_equal(buf.data, "x");
}

static void growing_keeps_every_byte(void **state)
{
    CLEANUP_BUF struct buf buf = BUF_INIT(100000);

    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        const char byte = (char)('a' + i % 26);

        assert_int_equal(buf_append(&buf, &byte, 1), 0);
    }
    for (unsigned i = 0; i < 100000; i++) {
        assert_int_equal(buf.data[i], 'a' + (int)(i % 26));
    }
    assert_int_equal(buf_append(&buf, "x", 1), -1);
}

static void reserving_and_committing(void **state)
{
    CLEANUP_BUF struct buf buf = BUF_INIT(10);
    char *room = buf_reserve(&buf, 10);

    (void)state;
    assert_non_null(room);
    memcpy(room, "abc", 3);
    buf_commit(&buf, 3);
    assert_string_equal(buf.data, "abc");
    assert_null(buf_reserve(&buf, 8));
    assert_non_null(buf_reserve(&buf, 7));
}

static void consuming_from_the_front(void **state)
{
    CLEANUP_BUF struct buf buf = BUF_INIT(10);

    (void)state;
    buf_consume(&buf, 0);
    assert_int_equal(buf_append_text(&buf, "abcdef"), 0);
    buf_consume(&buf, 2);
    assert_string_equal(buf.data, "cdef");
    buf_consume(&buf, 4);
    assert_string_equal(buf.data, "");
    assert_int_equal(buf.size, 0);
}

static void taking_the_bytes(void **state)
{
    CLEANUP_BUF struct buf buf = BUF_INIT(10);
    CLEANUP_FREE char *nothing = buf_take(&buf, NULL);
    CLEANUP_FREE char *taken = NULL;
    size_t size = 0;

    (void)state;
    assert_string_equal(nothing, "");
    assert_int_equal(buf_append_text(&buf, "abc"), 0);
    taken = buf_take(&buf, &size);
    assert_string_equal(taken, "abc");
    assert_int_equal(size, 3);
    assert_int_equal(buf.size, 0);
    assert_int_equal(buf_append_text(&buf, "0123456789"), 0);
}

static void emptying(void **state)
{
    CLEANUP_BUF struct buf buf = BUF_INIT(10);

    (void)state;
    buf_reset(&buf);
    buf_truncate(&buf, 0);
    assert_int_equal(buf_append_text(&buf, "abcdef"), 0);
    buf_truncate(&buf, 3);
    assert_string_equal(buf.data, "abc");
    buf_reset(&buf);
    assert_string_equal(buf.data, "");
    buf_done(&buf);
    buf_done(&buf);
    assert_null(buf.data);
    assert_int_equal(buf_append_text(&buf, "again"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_end_in_a_nul),
        cmocka_unit_test(the_maximum_holds_exactly),
        cmocka_unit_test(an_append_is_all_or_nothing),
        cmocka_unit_test(nothing_fits_in_a_maximum_of_zero),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(growing_keeps_every_byte),
        cmocka_unit_test(reserving_and_committing),
        cmocka_unit_test(consuming_from_the_front),
        cmocka_unit_test(taking_the_bytes),
        cmocka_unit_test(emptying),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
