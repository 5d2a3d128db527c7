/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/strv.h"

static void an_empty_vector_is_ready_for_exec(void **state)
{
    struct strv strv = { 0 };

    (void)state;
    assert_non_null(strv_argv(&strv));
    assert_null(strv_argv(&strv)[0]);
    strv_done(&strv);
    strv_done(&strv);
}

static void strings_are_copied_in_order(void **state)
{
    CLEANUP_STRV struct strv strv = { 0 };
    char text[] = "one";

    (void)state;
    strv_add(&strv, text);
    text[0] = 'X';
    strv_addf(&strv, "%s=%d", "two", 2);
    strv_add_all(&strv, "three", "", "five", NULL);
    strv_add_all(&strv, NULL);
    assert_int_equal(strv.count, 5);
    assert_string_equal(strv_argv(&strv)[0], "one");
    assert_string_equal(strv_argv(&strv)[1], "two=2");
    assert_string_equal(strv_argv(&strv)[2], "three");
    assert_string_equal(strv_argv(&strv)[3], "");
    assert_string_equal(strv_argv(&strv)[4], "five");
    assert_null(strv_argv(&strv)[5]);
}

static void a_long_vector_stays_terminated(void **state)
{
    CLEANUP_STRV struct strv strv = { 0 };

    (void)state;
    for (int i = 0; i < 1000; i++) {
        strv_addf(&strv, "%d", i);
        assert_null(strv.items[strv.count]);
    }
    assert_string_equal(strv.items[999], "999");
}

static void a_copy_is_independent(void **state)
{
    CLEANUP_STRV struct strv to = { 0 };
    struct strv from = { 0 };

    (void)state;
    strv_add(&to, "first");
    strv_copy(&to, &from);
    assert_int_equal(to.count, 1);
    strv_add_all(&from, "a", "b", NULL);
    strv_copy(&to, &from);
    strv_done(&from);
    assert_int_equal(to.count, 3);
    assert_string_equal(to.items[2], "b");
    assert_null(to.items[3]);
}

static void vectors_are_compared(void **state)
{
    CLEANUP_STRV struct strv a = { 0 };
    CLEANUP_STRV struct strv b = { 0 };

    (void)state;
    assert_true(strv_equal(&a, &b));
    strv_add_all(&a, "x", "y", NULL);
    assert_false(strv_equal(&a, &b));
    strv_add_all(&b, "x", "z", NULL);
    assert_false(strv_equal(&a, &b));
    assert_true(strv_equal(&a, &a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_vector_is_ready_for_exec),
        cmocka_unit_test(strings_are_copied_in_order),
        cmocka_unit_test(a_long_vector_stays_terminated),
        cmocka_unit_test(a_copy_is_independent),
        cmocka_unit_test(vectors_are_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
