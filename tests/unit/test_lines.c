/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/sandbox/lines.h"

static void texts_come_back(void **state)
{
    static const char *const texts[] = {
        "plain", "", "two\nlines", "a\\nb", "\\", "\n", "\xff\xc3"
    };
    CLEANUP_STRV struct strv given = { 0 };
    CLEANUP_STRV struct strv got = { 0 };
    CLEANUP_FREE char *joined = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        strv_add(&given, texts[i]);
    }
    joined = lines_join(&given);
    lines_split(joined, &got);
    assert_int_equal(got.count, given.count);
    for (size_t i = 0; i < got.count; i++) {
        assert_string_equal(got.items[i], texts[i]);
    }
}

static void nothing_is_nothing(void **state)
{
    struct strv none = { 0 };

    (void)state;
    assert_null(lines_join(&none));
    lines_split(NULL, &none);
    lines_split("", &none);
    assert_int_equal(none.count, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(nothing_is_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
