/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody most likely meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/nearest.h"

static const char *best(const char *wanted)
{
    static const char *const known[] = { "log_level", "log_format", "listen", "timeoutS" };
    struct nearest nearest;

    nearest_init(&nearest, wanted);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        nearest_offer(&nearest, known[i]);
    }
    return nearest_best(&nearest);
}

static void test_slips_are_understood(void **state)
{
    (void)state;
    assert_string_equal(best("log_level"), "log_level");
    assert_string_equal(best("log-levle"), "log_level");
    assert_string_equal(best("LogFormat"), "log_format");
    assert_string_equal(best("lisen"), "listen");
    assert_string_equal(best("timeout"), "timeoutS");
}

static void test_other_words_are_not(void **state)
{
    (void)state;
    assert_null(best(""));
    assert_null(best("--"));
    assert_null(best("banana"));
    assert_null(best("a_log_level_log_level_log_level_log_level"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slips_are_understood),
        cmocka_unit_test(test_other_words_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
