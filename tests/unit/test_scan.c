/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/work/scan.h"
#include "tests/unit/scratch.h"

static struct scan *take(size_t files_max, const char *const *skip)
{
    struct scan_options options = { .files_max = files_max, .skip = skip };
    struct scan *scan = NULL;

    assert_int_equal(scan_take(scratch_fd, &options, &scan, NULL), 0);
    return scan;
}

/* "+new 3, *changed 1, -gone 1, " from `before` (freed) to now. */
static void assert_changes(struct scan *before, const char *expected)
{
    static const char marks[] = {
        [SCAN_CREATED] = '+', [SCAN_MODIFIED] = '*', [SCAN_DELETED] = '-'
    };
    struct scan *after = take(0, NULL);
    struct buf out = BUF_INIT(10000);
    struct scan_diff diff;

    scan_compare(scratch_fd, before, after, 1000, &diff);
    for (size_t i = 0; i < diff.count; i++) {
        assert_int_equal(buf_printf(&out, "%c%s %d, ", marks[diff.rows[i].change],
                                    diff.rows[i].path, (int)diff.rows[i].size),
                         0);
    }
    assert_string_equal(out.size > 0 ? out.data : "", expected);
    assert_false(diff.truncated);
    buf_done(&out);
    scan_diff_done(&diff);
    scan_free(after);
    scan_free(before);
}

/* Writes in place, so that the inode stays; size and times as they were. */
static void rewrite_in_secret(const char *path, const char *text)
{
    int fd = openat(scratch_fd, path, O_RDWR | O_CLOEXEC);
    struct stat status;

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    assert_int_equal(futimens(fd, (struct timespec[2]){ status.st_atim, status.st_mtim }), 0);
    fd_close(fd);
}

static void created_modified_deleted(void **state)
{
    struct scan *before;

    (void)state;
    scratch_file(scratch_fd, "keep", "1");
    scratch_file(scratch_fd, "dir/change", "1");
    scratch_file(scratch_fd, "gone", "12");
    scratch_file(scratch_fd, "old-name", "123");
    before = take(0, NULL);
    scratch_file(scratch_fd, "dir/change", "1234");
    scratch_file(scratch_fd, "new/a\nb\xc3.txt", "12345");
    assert_int_equal(unlinkat(scratch_fd, "gone", 0), 0);
    assert_int_equal(renameat(scratch_fd, "old-name", scratch_fd, "new-name"), 0);
    assert_int_equal(mkdirat(scratch_fd, "empty", 0700), 0);
    assert_int_equal(mkfifoat(scratch_fd, "fifo", 0600), 0);
    assert_int_equal(symlinkat("keep", scratch_fd, "link"), 0);
    assert_changes(before,
                   "*dir/change 4, -gone 2, +new/a\nb\xc3.txt 5, +new-name 3, -old-name 3, ");
}

static void nothing_changed(void **state)
{
    char byte;
    struct scan *before;
    int fd;

    (void)state;
    scratch_file(scratch_fd, "a/b", "1");
    before = take(0, NULL);
    fd = openat(scratch_fd, "a/b", O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, &byte, 1), 1);
    fd_close(fd);
    assert_changes(before, "");
}

/* At once after it was made, and again and again: within one tick of the file system's clock. */
static void changes_in_secret(void **state)
{
    struct scan *before;

    (void)state;
    for (int i = 0; i < 50; i++) {
        scratch_file(scratch_fd, "t.txt", "aaaa");
        before = take(0, NULL);
        rewrite_in_secret("t.txt", "bbbb");
        assert_changes(before, "*t.txt 4, ");
    }
    before = take(0, NULL);
    assert_int_equal(unlinkat(scratch_fd, "t.txt", 0), 0);
    scratch_file(scratch_fd, "t.txt", "cccc");
    assert_changes(before, "*t.txt 4, ");
}

static void left_out_on_request(void **state)
{
    static const char *const skip[] = { ".deps", "d/e", NULL };
    struct scan *scan;

    (void)state;
    scratch_file(scratch_fd, ".deps/lib/x", "1");
    scratch_file(scratch_fd, "d/e/x", "12");
    scratch_file(scratch_fd, "d/x", "123");
    scratch_file(scratch_fd, "d/.deps/x", "1234");
    scan = take(0, skip);
    assert_int_equal(scan_files(scan), 2);
    assert_int_equal(scan_bytes(scan), 7);
    assert_true(scan_disk(scan) > 0);
    assert_false(scan_incomplete(scan));
    scan_free(scan);
}

static void unreadable_places_are_passed_over(void **state)
{
    struct scan *scan;

    (void)state;
    scratch_file(scratch_fd, "d/x", "123");
    scratch_file(scratch_fd, "y", "1");
    assert_int_equal(fchmodat(scratch_fd, "y", 0, 0), 0);
    assert_int_equal(fchmodat(scratch_fd, "d", 0, 0), 0);
    scan = take(0, NULL);
    assert_int_equal(scan_files(scan), 1);
    scan_free(scan);
}

/* What lies behind the end of a census was neither created nor deleted, as far as is known. */
static void more_files_than_are_counted(void **state)
{
    struct scan *before;
    struct scan *after;
    struct scan_diff diff;

    (void)state;
    scratch_file(scratch_fd, "b", "1");
    scratch_file(scratch_fd, "c", "1");
    scratch_file(scratch_fd, "d", "1");
    before = take(2, NULL);
    assert_true(scan_incomplete(before));
    scratch_file(scratch_fd, "a", "1");
    scratch_file(scratch_fd, "e", "1");
    after = take(2, NULL);
    scan_compare(scratch_fd, before, after, 10, &diff);
    assert_true(diff.truncated);
    assert_int_equal(diff.count, 1);
    assert_string_equal(diff.rows[0].path, "a");
    scan_diff_done(&diff);
    scan_free(before);
    scan_free(after);
}

static void more_rows_than_wanted(void **state)
{
    struct scan *before = take(0, NULL);
    struct scan *after;
    struct scan_diff diff;

    (void)state;
    scratch_file(scratch_fd, "a", "1");
    scratch_file(scratch_fd, "b", "1");
    after = take(0, NULL);
    scan_compare(scratch_fd, before, after, 1, &diff);
    assert_true(diff.truncated);
    assert_int_equal(diff.count, 1);
    scan_diff_done(&diff);
    scan_compare(scratch_fd, before, after, 2, &diff);
    assert_false(diff.truncated);
    assert_int_equal(diff.count, 2);
    scan_diff_done(&diff);
    scan_free(before);
    scan_free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(created_modified_deleted, scratch_fresh),
        cmocka_unit_test_setup(nothing_changed, scratch_fresh),
        cmocka_unit_test_setup(changes_in_secret, scratch_fresh),
        cmocka_unit_test_setup(left_out_on_request, scratch_fresh),
        cmocka_unit_test_setup(unreadable_places_are_passed_over, scratch_fresh),
        cmocka_unit_test_setup(more_files_than_are_counted, scratch_fresh),
        cmocka_unit_test_setup(more_rows_than_wanted, scratch_fresh),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
