/* SPDX-License-Identifier: Apache-2.0 */
/* A socket that was corked is not for long, while a large file is sent. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "server/uncork.h"

#define MIB (UINT64_C(1) << 20)

static int corked_socket(void)
{
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on)), 0);
    return fd;
}

static bool is_corked(int fd)
{
    int on = -1;
    socklen_t size = sizeof(on);

    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, &size), 0);
    return on != 0;
}

static void large_files_flow(void **state)
{
    struct alarm *alarm = alarm_new(NULL);
    struct uncork uncork = { .looks = { { .fd = -1 } } };
    int64_t deadline = clock_deadline_after_s(20);
    int fd = corked_socket();

    (void)state;
    assert_non_null(alarm);
    uncork_begin(&uncork, alarm, fd, MIB);
    while (is_corked(fd) && !clock_passed(deadline)) {
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    assert_false(is_corked(fd));
    uncork_end(&uncork, alarm);
    uncork_end(&uncork, alarm);
    (void)close(fd);
    alarm_free(alarm);
}

static void small_ones_are_left_alone(void **state)
{
    struct alarm *alarm = alarm_new(NULL);
    struct uncork uncork = { .looks = { { .fd = -1 } } };
    int fd = corked_socket();

    (void)state;
    assert_non_null(alarm);
    uncork_begin(&uncork, alarm, fd, MIB - 1);
    for (size_t i = 0; i < UNCORK_LOOKS; i++) {
        assert_false(uncork.looks[i].entry.set);
    }
    uncork_end(&uncork, alarm);
    assert_true(is_corked(fd));
    (void)close(fd);
    alarm_free(alarm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_files_flow),
        cmocka_unit_test(small_ones_are_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
