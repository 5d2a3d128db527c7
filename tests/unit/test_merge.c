/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/work/merge.h"
#include "tests/unit/scratch.h"

static int open_directory(const char *name)
{
    int fd;

    (void)mkdirat(scratch_fd, name, 0700);
    fd = openat(scratch_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void a_tree_goes_over_another(void **state)
{
    CLEANUP_FD int from = open_directory("from");
    CLEANUP_FD int to = open_directory("to");
    struct stat status;

    (void)state;
    scratch_file(to, "kept", "kept");
    scratch_file(to, "a/b/same", "old");
    scratch_file(to, "a/other", "other");
    assert_int_equal(symlinkat("/etc/passwd", to, "link"), 0);
    scratch_file(from, "a/b/same", "new");
    scratch_file(from, "a/fresh/x/y", "deep");
    scratch_file(from, "link", "no link any more");
    scratch_file(from, "locked/in", "in");
    assert_int_equal(symlinkat("kept", from, "a/to-kept"), 0);
    assert_int_equal(fchmodat(from, "locked", 0555, 0), 0);
    assert_int_equal(merge_tree(from, to, NULL), 0);
    assert_string_equal(scratch_text(to, "kept"), "kept");
    assert_string_equal(scratch_text(to, "a/b/same"), "new");
    assert_string_equal(scratch_text(to, "a/other"), "other");
    assert_string_equal(scratch_text(to, "a/fresh/x/y"), "deep");
    assert_string_equal(scratch_text(to, "link"), "no link any more");
    assert_string_equal(scratch_text(to, "locked/in"), "in");
    assert_true(scratch_has(to, "a/to-kept"));
    assert_int_equal(fstatat(to, "locked", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0555);
    assert_int_equal(fchmodat(to, "locked", 0700, 0), 0);
}

static void nothing_moves_when_something_is_in_the_way(void **state)
{
    CLEANUP_FD int from = open_directory("from");
    CLEANUP_FD int to = open_directory("to");
    struct err err = ERR_INIT;

    (void)state;
    scratch_file(from, "a", "new");
    scratch_file(from, "z", "a file");
    scratch_file(to, "a", "old");
    scratch_file(to, "z/x", "in a directory");
    assert_int_equal(merge_tree(from, to, &err), -1);
    assert_int_equal(err.code, ERR_FILE_EXISTS);
    assert_string_equal(err.msg, "z: a directory is in the way");
    assert_string_equal(scratch_text(to, "a"), "old");
    assert_int_equal(unlinkat(from, "z", 0), 0);
    scratch_file(from, "a2/x", "below");
    scratch_file(to, "a2", "a file");
    assert_int_equal(merge_tree(from, to, &err), -1);
    assert_int_equal(err.code, ERR_FILE_EXISTS);
    assert_string_equal(scratch_text(to, "a"), "old");
}

static void links_are_not_gone_through(void **state)
{
    CLEANUP_FD int from = open_directory("from");
    CLEANUP_FD int to = open_directory("to");
    CLEANUP_FD int outside = open_directory("outside");
    struct err err = ERR_INIT;

    (void)state;
    scratch_file(from, "d/x", "new");
    assert_int_equal(symlinkat("../outside", to, "d"), 0);
    assert_int_equal(merge_tree(from, to, &err), -1);
    assert_int_equal(err.code, ERR_FILE_EXISTS);
    assert_false(scratch_has(outside, "x"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_tree_goes_over_another, scratch_fresh),
        cmocka_unit_test_setup(nothing_moves_when_something_is_in_the_way, scratch_fresh),
        cmocka_unit_test_setup(links_are_not_gone_through, scratch_fresh),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
