/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/digits.h"

#define TEXT_MAX ((size_t)32)

static void assert_text(struct buf *buf, const char *expected)
{
    assert_int_equal(buf->size, strlen(expected));
    assert_memory_equal(buf->data, expected, buf->size);
    buf_reset(buf);
}

/* Around all powers of ten, both signs, and the ends. */
static void whole_numbers_are_printed(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT(TEXT_MAX);
    char expected[TEXT_MAX];

    (void)state;
    for (uint64_t power = 1; power <= UINT64_MAX / 10; power *= 10) {
        for (uint64_t value = power - 1; value <= power + 1; value++) {
            (void)snprintf(expected, sizeof(expected), "%" PRIu64, value);
            assert_int_equal(digits_put(&text, value), 0);
            assert_text(&text, expected);
            (void)snprintf(expected, sizeof(expected), "%" PRId64, -(int64_t)value);
            assert_int_equal(digits_put_signed(&text, -(int64_t)value), 0);
            assert_text(&text, expected);
        }
    }
    assert_int_equal(digits_put(&text, UINT64_MAX), 0);
    assert_text(&text, "18446744073709551615");
    assert_int_equal(digits_put_signed(&text, INT64_MIN), 0);
    assert_text(&text, "-9223372036854775808");
    assert_int_equal(digits_put_signed(&text, INT64_MAX), 0);
    assert_text(&text, "9223372036854775807");
}

static void thousandths_are_printed(void **state)
{
    static const struct {
        uint64_t value;
        const char *whole;
        const char *trimmed;
    } samples[] = {
        { 0, "0.000", "0" },
        { 1, "0.001", "0.001" },
        { 10, "0.010", "0.01" },
        { 100, "0.100", "0.1" },
        { 999, "0.999", "0.999" },
        { 1000, "1.000", "1" },
        { 1001, "1.001", "1.001" },
        { 12340, "12.340", "12.34" },
        { 120000, "120.000", "120" },
        { UINT64_MAX, "18446744073709551.615", "18446744073709551.615" },
    };
    CLEANUP_BUF struct buf text = BUF_INIT(TEXT_MAX);

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        assert_int_equal(digits_put_thousandths(&text, samples[i].value, false), 0);
        assert_text(&text, samples[i].whole);
        assert_int_equal(digits_put_thousandths(&text, samples[i].value, true), 0);
        assert_text(&text, samples[i].trimmed);
    }
}

/* Trimmed it is what "%.15g" prints, as JSON had it. */
static void trimmed_is_what_printf_says(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT(TEXT_MAX);
    char expected[TEXT_MAX];

    (void)state;
    for (uint64_t value = 0; value < UINT64_C(1000000000000000); value = value * 7 / 3 + 1) {
        (void)snprintf(expected, sizeof(expected), "%.15g", (double)value / 1000);
        assert_int_equal(digits_put_thousandths(&text, value, true), 0);
        assert_text(&text, expected);
    }
}

static void a_full_buffer_is_told(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT(3);

    (void)state;
    assert_int_equal(digits_put(&text, 1000), -1);
    assert_int_equal(digits_put_signed(&text, -100), -1);
    assert_int_equal(digits_put_thousandths(&text, 1, false), -1);
    assert_int_equal(text.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_are_printed),
        cmocka_unit_test(thousandths_are_printed),
        cmocka_unit_test(trimmed_is_what_printf_says),
        cmocka_unit_test(a_full_buffer_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
