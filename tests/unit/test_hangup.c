/* SPDX-License-Identifier: Apache-2.0 */
/* The hang-up table: told once, never for an ended watch, never mixed up when slots are reused. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/hangup.h"

struct target {
    int held;
    int gone;
};

static void hold(void *target)
{
    ((struct target *)target)->held++;
}

static void gone(void *target)
{
    ((struct target *)target)->gone++;
}

static const struct hangup_calls calls = { .hold = hold, .gone = gone };
static struct hangup *hangup;
static int pairs[3][2];

static int setup(void **state)
{
    (void)state;
    hangup = hangup_new(2, &calls, NULL);
    for (size_t i = 0; i < 3; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]) < 0) {
            return -1;
        }
    }
    return hangup != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    hangup_free(hangup);
    for (size_t i = 0; i < 3; i++) {
        (void)close(pairs[i][0]);
        (void)close(pairs[i][1]);
    }
    return 0;
}

static bool has_news(void)
{
    struct pollfd item = { .fd = hangup_fd(hangup), .events = POLLIN };

    return poll(&item, 1, 0) == 1;
}

static void test_told_once(void **state)
{
    struct target target = { 0 };

    (void)state;
    assert_true(hangup_watch(hangup, pairs[0][0], &target) != HANGUP_NONE);
    assert_int_equal(write(pairs[0][1], "pipelined", 9), 9);
    assert_false(has_news());
    assert_int_equal(shutdown(pairs[0][1], SHUT_WR), 0);
    assert_true(has_news());
    hangup_dispatch(hangup);
    hangup_dispatch(hangup);
    assert_int_equal(target.held, 1);
    assert_int_equal(target.gone, 1);
    assert_false(has_news());
}

static void test_not_told_after_the_end(void **state)
{
    struct target target = { 0 };
    uint64_t watch = hangup_watch(hangup, pairs[0][0], &target);

    (void)state;
    assert_int_equal(shutdown(pairs[0][1], SHUT_WR), 0);
    hangup_unwatch(hangup, watch);
    hangup_unwatch(hangup, watch);
    hangup_unwatch(hangup, HANGUP_NONE);
    assert_false(has_news());
    hangup_dispatch(hangup);
    assert_int_equal(target.gone, 0);
}

static void test_a_reused_slot_is_another_watch(void **state)
{
    struct target old = { 0 };
    struct target new = { 0 };
    uint64_t first = hangup_watch(hangup, pairs[0][0], &old);
    uint64_t second;

    (void)state;
    hangup_unwatch(hangup, first);
    second = hangup_watch(hangup, pairs[1][0], &new);
    assert_true(first != second);
    hangup_unwatch(hangup, first); /* late, and of no effect */
    assert_int_equal(shutdown(pairs[1][1], SHUT_WR), 0);
    hangup_dispatch(hangup);
    assert_int_equal(old.gone, 0);
    assert_int_equal(new.gone, 1);
}

static void test_a_full_table_watches_no_more(void **state)
{
    struct target target = { 0 };

    (void)state;
    assert_true(hangup_watch(hangup, pairs[0][0], &target) != HANGUP_NONE);
    assert_true(hangup_watch(hangup, pairs[1][0], &target) != HANGUP_NONE);
    assert_true(hangup_watch(hangup, pairs[2][0], &target) == HANGUP_NONE);
    assert_int_equal(shutdown(pairs[0][1], SHUT_WR), 0);
    hangup_dispatch(hangup);
    assert_true(hangup_watch(hangup, pairs[2][0], &target) != HANGUP_NONE);
}

static void test_gone_before_it_is_watched(void **state)
{
    struct target target = { 0 };

    (void)state;
    assert_int_equal(close(pairs[0][1]), 0);
    pairs[0][1] = -1;
    assert_true(hangup_watch(hangup, pairs[0][0], &target) != HANGUP_NONE);
    hangup_dispatch(hangup);
    assert_int_equal(target.gone, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_told_once),
        TEST(test_not_told_after_the_end),
        TEST(test_a_reused_slot_is_another_watch),
        TEST(test_a_full_table_watches_no_more),
        TEST(test_gone_before_it_is_watched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
