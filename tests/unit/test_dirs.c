/* SPDX-License-Identifier: Apache-2.0 */
/* Private directories and the lock of the state directory. */
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
#include "server/dirs.h"
#include "tests/unit/scratch.h"

static int make(const char *below, struct err *err)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "%s/%s", scratch_path, below);
    return dirs_make_private(path, geteuid(), getegid(), err);
}

static mode_t mode_of(const char *below)
{
    struct stat status;

    assert_int_equal(fstatat(scratch_fd, below, &status, AT_SYMLINK_NOFOLLOW), 0);
    return status.st_mode & 07777;
}

static void test_made_with_parents(void **state)
{
    (void)state;
    assert_int_equal(make("a/b/c", NULL), 0);
    assert_int_equal(mode_of("a"), 0700);
    assert_int_equal(mode_of("a/b/c"), 0700);
    assert_int_equal(make("a/b/c", NULL), 0);
}

static void test_open_to_others(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(mkdirat(scratch_fd, "open", 0700), 0);
    assert_int_equal(fchmodat(scratch_fd, "open", 0755, 0), 0);
    assert_int_equal(make("open", &err), -1);
    assert_non_null(strstr(err.msg, "755"));
    assert_non_null(strstr(err.remedy, "chmod 700"));
    assert_int_equal(mode_of("open"), 0755);
}

static void test_of_somebody_else(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(dirs_make_private("/usr", geteuid(), getegid(), &err), -1);
    assert_non_null(strstr(err.msg, "belongs to user 0"));
}

static void test_not_a_directory(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    scratch_file(scratch_fd, "file", "");
    assert_int_equal(make("file", &err), -1);
    assert_int_equal(mkdirat(scratch_fd, "real", 0700), 0);
    assert_int_equal(symlinkat("real", scratch_fd, "link"), 0);
    assert_int_equal(make("link", &err), -1);
    assert_int_equal(make("file/below", &err), -1);
}

static void test_one_owner_at_a_time(void **state)
{
    struct err err = ERR_INIT;
    char pid[32];
    int first = dirs_lock(scratch_path, 0, &err);

    (void)state;
    assert_true(first >= 0);
    assert_int_equal(dirs_lock(scratch_path, 0, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    (void)snprintf(pid, sizeof(pid), "process %d)", (int)getpid());
    assert_non_null(strstr(err.msg, pid));
    fd_close(first);
    first = dirs_lock(scratch_path, 0, &err);
    assert_true(first >= 0);
    fd_close(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_made_with_parents, scratch_fresh),
        cmocka_unit_test_setup(test_open_to_others, scratch_fresh),
        cmocka_unit_test_setup(test_of_somebody_else, scratch_fresh),
        cmocka_unit_test_setup(test_not_a_directory, scratch_fresh),
        cmocka_unit_test_setup(test_one_owner_at_a_time, scratch_fresh),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
