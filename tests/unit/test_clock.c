/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/clock.h"

#define HOUR_S 3600

static void clocks_run_forward(void **state)
{
    int64_t first = clock_mono_ns();

    (void)state;
    assert_true(clock_mono_ns() >= first);
    /* After 2025-01-01. */
    assert_true(clock_wall_ms() > INT64_C(1735689600000));
}

static void far_deadlines_saturate(void **state)
{
    (void)state;
    assert_true(clock_deadline_after_s(1e300) == CLOCK_NEVER);
    assert_true(clock_deadline_after_s((double)INFINITY) == CLOCK_NEVER);
    assert_true(clock_deadline_after_s(9.2e9) == CLOCK_NEVER);
    assert_true(clock_deadline_after_ms(INT64_MAX) == CLOCK_NEVER);
    assert_true(clock_deadline_after_ms(INT64_MAX / CLOCK_NS_PER_MS) == CLOCK_NEVER);
    assert_true(clock_deadline_after_ms(INT64_MAX / CLOCK_NS_PER_MS - 1) == CLOCK_NEVER);
}

static void no_time_is_now(void **state)
{
    (void)state;
    assert_true(clock_passed(clock_deadline_after_s(0)));
    assert_true(clock_passed(clock_deadline_after_s(-5)));
    assert_true(clock_passed(clock_deadline_after_s((double)-INFINITY)));
    assert_true(clock_passed(clock_deadline_after_s((double)NAN)));
    assert_true(clock_passed(clock_deadline_after_ms(0)));
    assert_true(clock_passed(clock_deadline_after_ms(INT64_MIN)));
}

static void a_deadline_is_as_far_as_asked(void **state)
{
    int64_t before = clock_mono_ns();
    int64_t deadline = clock_deadline_after_s(HOUR_S);
    int64_t after = clock_mono_ns();

    (void)state;
    assert_true(deadline >= before + HOUR_S * CLOCK_NS_PER_S);
    assert_true(deadline <= after + HOUR_S * CLOCK_NS_PER_S);
    assert_false(clock_passed(deadline));
    assert_false(clock_passed(CLOCK_NEVER));
    assert_true(clock_earlier(deadline, CLOCK_NEVER) == deadline);
    assert_true(clock_earlier(CLOCK_NEVER, deadline) == deadline);
}

static void waits_for_poll(void **state)
{
    int64_t hour = clock_deadline_after_s(HOUR_S);

    (void)state;
    assert_int_equal(clock_poll_ms(CLOCK_NEVER, -1), -1);
    assert_int_equal(clock_poll_ms(CLOCK_NEVER, 50), 50);
    assert_int_equal(clock_poll_ms(clock_mono_ns(), -1), 0);
    assert_int_equal(clock_poll_ms(0, 50), 0);
    assert_int_equal(clock_poll_ms(INT64_MIN, 50), 0);
    assert_int_equal(clock_poll_ms(hour, 50), 50);
    assert_int_equal(clock_poll_ms(hour, 0), 0);
    assert_in_range(clock_poll_ms(hour, -1), (HOUR_S - 600) * 1000, HOUR_S * 1000);
    assert_int_equal(clock_poll_ms(CLOCK_NEVER - 1, -1), INT_MAX);
}

/* Rounded down it would be 0 and the waiter would spin. */
static void a_started_millisecond_counts(void **state)
{
    int64_t deadline = clock_mono_ns() + CLOCK_NS_PER_S;

    (void)state;
    while (!clock_passed(deadline - CLOCK_NS_PER_MS / 2)) {
        int ms = clock_poll_ms(deadline, -1);

        assert_true(ms > 0 || clock_passed(deadline));
    }
}

static void differences(void **state)
{
    (void)state;
    assert_true(fabs(clock_ms_between(1000000, 3500000) - 2.5) < 1e-9);
}

static void rfc3339_texts(void **state)
{
    char text[CLOCK_TEXT_SIZE];

    (void)state;
    assert_string_equal(clock_format_utc(0, text), "1970-01-01T00:00:00.000Z");
    assert_string_equal(clock_format_utc(-1, text), "1969-12-31T23:59:59.999Z");
    assert_string_equal(clock_format_utc(INT64_C(1795977461123), text), "2026-11-29T18:37:41.123Z");
    assert_string_equal(clock_format_utc(INT64_C(1709164800000), text), "2024-02-29T00:00:00.000Z");
    assert_string_equal(clock_format_utc(INT64_MAX, text), "9999-12-31T23:59:59.999Z");
    assert_string_equal(clock_format_utc(INT64_MIN, text), "0000-01-01T00:00:00.000Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_run_forward), cmocka_unit_test(far_deadlines_saturate),
        cmocka_unit_test(no_time_is_now),     cmocka_unit_test(a_deadline_is_as_far_as_asked),
        cmocka_unit_test(waits_for_poll),     cmocka_unit_test(a_started_millisecond_counts),
        cmocka_unit_test(differences),        cmocka_unit_test(rfc3339_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
