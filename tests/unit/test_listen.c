/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets: addresses, stale and live Unix sockets, names. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/fd.h"
#include "server/listen.h"
#include "tests/unit/scratch.h"

static struct listen_set set;

static int open_one(const char *text, struct err *err)
{
    return listen_open(&set, text, err);
}

static int open_unix(struct err *err)
{
    char text[160];

    (void)snprintf(text, sizeof(text), "unix:%s/sock", scratch_path);
    return listen_open(&set, text, err);
}

static void test_addresses(void **state)
{
    static const char *const bad[] = { "",
                                       "127.0.0.1",
                                       "5376",
                                       ":5376",
                                       "127.0.0.1:",
                                       "127.0.0.1:x",
                                       "127.0.0.1:65536",
                                       "example.org:1",
                                       "[::1:1",
                                       "::1:1",
                                       "[]:1",
                                       "unix:",
                                       "unix:relative",
                                       "1.2.3:4" };
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(open_one(bad[i], &err), -1);
        assert_int_equal(err.code, ERR_BAD_VALUE);
    }
    assert_int_equal(set.count, 0);
}

static void test_the_kernel_chooses_a_port(void **state)
{
    (void)state;
    assert_int_equal(open_one("127.0.0.1:0", NULL), 0);
    assert_int_equal(open_one("localhost:0", NULL), 0);
    assert_int_equal(set.count, 2);
    assert_true(set.sockets[0].tcp && listen_is_local(&set.sockets[0]));
    assert_int_equal(strncmp(set.sockets[1].name, "http://127.0.0.1:", 17), 0);
    assert_true(strcmp(set.sockets[0].name, "http://127.0.0.1:0") != 0);
    assert_true(strcmp(set.sockets[0].name, set.sockets[1].name) != 0);
    listen_close(&set);
}

static void test_a_port_in_use(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(open_one("127.0.0.1:0", NULL), 0);
    assert_int_equal(open_one(set.sockets[0].name + strlen("http://"), &err), -1);
    assert_int_equal(err.code, ERR_IO);
    assert_non_null(strstr(err.remedy, "--listen"));
    listen_close(&set);
}

static void test_a_private_unix_socket(void **state)
{
    struct stat status;

    (void)state;
    assert_int_equal(open_unix(NULL), 0);
    assert_false(set.sockets[0].tcp);
    assert_int_equal(set.sockets[0].name[0], '/');
    assert_int_equal(fstatat(scratch_fd, "sock", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    listen_close(&set);
    assert_false(scratch_has(scratch_fd, "sock"));
}

static void test_only_a_dead_socket_is_replaced(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(open_unix(NULL), 0);
    assert_int_equal(open_unix(&err), -1); /* the first one listens */
    assert_int_equal(err.code, ERR_IO);
    fd_clear(&set.sockets[0].fd); /* as if the process had died */
    assert_int_equal(open_unix(NULL), 0);
    assert_int_equal(set.count, 2);
    listen_close(&set);
}

static void test_other_files_are_left_alone(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    scratch_file(scratch_fd, "sock", "precious");
    assert_int_equal(open_unix(&err), -1);
    assert_string_equal(scratch_text(scratch_fd, "sock"), "precious");
}

static void test_reachable_from_elsewhere(void **state)
{
    (void)state;
    assert_int_equal(open_one("0.0.0.0:0", NULL), 0);
    assert_false(listen_is_local(&set.sockets[0]));
    listen_close(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_the_kernel_chooses_a_port),
        cmocka_unit_test(test_a_port_in_use),
        cmocka_unit_test_setup(test_a_private_unix_socket, scratch_fresh),
        cmocka_unit_test_setup(test_only_a_dead_socket_is_replaced, scratch_fresh),
        cmocka_unit_test_setup(test_other_files_are_left_alone, scratch_fresh),
        cmocka_unit_test(test_reachable_from_elsewhere),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
