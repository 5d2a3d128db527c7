/* SPDX-License-Identifier: Apache-2.0 */
/* When a daemon leaves: what the settings, the manager and the clients have to do with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "server/idle.h"

static struct config config;

static int fresh(void **state)
{
    (void)state;
    config_init(&config);
    return 0;
}

static int done(void **state)
{
    (void)state;
    config_done(&config);
    return 0;
}

static double limit(bool is_activated)
{
    struct idle idle;

    idle_init(&idle, &config, is_activated);
    return idle.limit_s;
}

static void test_limits(void **state)
{
    (void)state;
    assert_true(limit(false) == 0);
    assert_true(limit(true) == 300);
    config.on_demand = true;
    assert_true(limit(false) == 300);
    config.idle_exit_s = 0;
    assert_true(limit(true) == 0);
    config.idle_exit_s = 2.5;
    assert_true(limit(true) == 2.5);
    config.on_demand = false;
    assert_true(limit(false) == 2.5);
}

static void test_without_a_limit_it_is_never_over(void **state)
{
    struct idle idle = { .limit_s = 0 };

    (void)state;
    assert_false(idle_is_over(&idle));
    assert_int_equal(idle_wait_ms(&idle, -1), -1);
    assert_int_equal(idle_wait_ms(&idle, 500), 500);
}

static void test_it_is_over_after_the_limit(void **state)
{
    struct idle idle = { .limit_s = 100 };

    (void)state;
    idle_touch(&idle);
    assert_false(idle_is_over(&idle));
    assert_in_range(idle_wait_ms(&idle, -1), 90 * 1000, 100 * 1000);
    assert_int_equal(idle_wait_ms(&idle, 500), 500);
    idle.since -= 101 * CLOCK_NS_PER_S;
    assert_true(idle_is_over(&idle));
    assert_int_equal(idle_wait_ms(&idle, -1), 0);
    idle_touch(&idle);
    assert_false(idle_is_over(&idle));
}

/* A client that started it looks whether it is there now and then: an idle daemon waits for it. */
static void test_who_started_it_is_waited_for(void **state)
{
    struct idle idle;

    (void)state;
    config.on_demand = true;
    config.idle_exit_s = 0.001;
    idle_init(&idle, &config, false);
    idle.since -= CLOCK_NS_PER_S;
    idle_touch(&idle);
    assert_in_range(idle_wait_ms(&idle, -1), 20 * 1000, 30 * 1000);
    idle_meet(&idle);
    idle.since -= CLOCK_NS_PER_S;
    assert_true(idle_is_over(&idle));
    config.idle_exit_s = 0;
    idle_init(&idle, &config, false);
    assert_int_equal(idle_wait_ms(&idle, -1), -1);
    config.idle_exit_s = 300;
    idle_init(&idle, &config, false);
    assert_in_range(idle_wait_ms(&idle, -1), 290 * 1000, 300 * 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_limits),
        TEST(test_without_a_limit_it_is_never_over),
        TEST(test_it_is_over_after_the_limit),
        TEST(test_who_started_it_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
