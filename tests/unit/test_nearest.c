/* SPDX-License-Identifier: Apache-2.0 */
/* Distances between words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/nearest.h"

static void test_distances(void **state)
{
    char longest[NEAREST_WORD_MAX + 2];

    (void)state;
    assert_int_equal(nearest_distance("", ""), 0);
    assert_int_equal(nearest_distance("listen", "listen"), 0);
    assert_int_equal(nearest_distance("log-level", "log_level"), 0);
    assert_int_equal(nearest_distance("lisen", "listen"), 1);
    assert_int_equal(nearest_distance("listenn", "listen"), 1);
    assert_int_equal(nearest_distance("kitten", "sitting"), 3);
    assert_int_equal(nearest_distance("", "abc"), 3);
    memset(longest, 'a', sizeof(longest));
    longest[NEAREST_WORD_MAX] = '\0';
    assert_int_equal(nearest_distance(longest, ""), NEAREST_WORD_MAX);
    longest[NEAREST_WORD_MAX] = 'a';
    longest[NEAREST_WORD_MAX + 1] = '\0';
    assert_true(nearest_distance(longest, "") == SIZE_MAX);
    assert_true(nearest_distance("", longest) == SIZE_MAX);
}

static void test_what_is_close(void **state)
{
    (void)state;
    assert_true(nearest_is_close("ab", 1));
    assert_false(nearest_is_close("ab", 2));
    assert_true(nearest_is_close("log_level", 3));
    assert_false(nearest_is_close("log_level", 4));
    assert_false(nearest_is_close("log_level", SIZE_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_what_is_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
