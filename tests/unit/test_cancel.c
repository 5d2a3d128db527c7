/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cancel.h"

static bool readable(const struct cancel *cancel)
{
    struct pollfd item = { .fd = cancel_poll_fd(cancel), .events = POLLIN };

    return poll(&item, 1, 0) == 1 && (item.revents & POLLIN) != 0;
}

static void the_first_reason_wins(void **state)
{
    struct cancel cancel;

    (void)state;
    assert_int_equal(cancel_init(&cancel, NULL), 0);
    assert_int_equal(fcntl(cancel.fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(cancel_get(&cancel), CANCEL_NONE);
    assert_false(readable(&cancel));
    cancel_fire(&cancel, CANCEL_CLIENT_GONE);
    cancel_fire(&cancel, CANCEL_SHUTDOWN);
    assert_int_equal(cancel_get(&cancel), CANCEL_CLIENT_GONE);
    assert_true(readable(&cancel));
    assert_true(readable(&cancel));
    cancel_done(&cancel);
    cancel_done(&cancel);
}

static void nobody_can_cancel_a_null_token(void **state)
{
    (void)state;
    assert_int_equal(cancel_get(NULL), CANCEL_NONE);
    assert_int_equal(cancel_poll_fd(NULL), -1);
}

static void no_descriptor_left(void **state)
{
    struct rlimit old = { 0 };
    struct rlimit none = { 0 };
    struct cancel cancel;
    struct err err = ERR_INIT;
    int result = 0;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    result = cancel_init(&cancel, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(result, -1);
    assert_int_equal(err.code, ERR_IO);
}

/* Without a descriptor: there is none to be had here. */
static void asking_needs_no_descriptor(void **state)
{
    struct cancel cancel;

    (void)state;
    cancel_init_to_ask(&cancel);
    assert_int_equal(cancel_get(&cancel), CANCEL_NONE);
    assert_int_equal(cancel_poll_fd(&cancel), -1);
    cancel_fire(&cancel, CANCEL_CLIENT_GONE);
    cancel_fire(&cancel, CANCEL_SHUTDOWN);
    assert_int_equal(cancel_get(&cancel), CANCEL_CLIENT_GONE);
    cancel_done(&cancel);
}

static void *fire(void *argument)
{
    cancel_fire(argument, CANCEL_REQUESTED);
    return NULL;
}

static void a_waiter_woken_by_the_descriptor_finds_the_reason(void **state)
{
    struct cancel cancel;
    struct pollfd item = { .events = POLLIN };
    pthread_t threads[4];

    (void)state;
    assert_int_equal(cancel_init(&cancel, NULL), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, fire, &cancel), 0);
    }
    item.fd = cancel_poll_fd(&cancel);
    assert_int_equal(poll(&item, 1, -1), 1);
    assert_int_equal(cancel_get(&cancel), CANCEL_REQUESTED);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    cancel_done(&cancel);
}

static void every_reason_has_a_text(void **state)
{
    (void)state;
    for (int i = CANCEL_NONE; i <= CANCEL_SHUTDOWN; i++) {
        assert_true(strlen(cancel_reason_text((enum cancel_reason)i)) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_reason_wins),
        cmocka_unit_test(nobody_can_cancel_a_null_token),
        cmocka_unit_test(no_descriptor_left),
        cmocka_unit_test(asking_needs_no_descriptor),
        cmocka_unit_test(a_waiter_woken_by_the_descriptor_finds_the_reason),
        cmocka_unit_test(every_reason_has_a_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
