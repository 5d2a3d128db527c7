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

#include "lib/base/cleanup.h"
#include "lib/work/copy.h"
#include "lib/work/depot.h"
#include "lib/work/replace.h"
#include "tests/unit/scratch.h"

static int open_directory(const char *name)
{
    int fd;

    (void)mkdirat(scratch_fd, name, 0700);
    fd = openat(scratch_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void a_copy_is_the_same(void **state)
{
    static const char *const skip[] = { ".deps", NULL };
    struct copy_options options = { .skip = skip };
    struct copy_result result;
    CLEANUP_FD int from = open_directory("from");
    CLEANUP_FD int to = open_directory("to");
    CLEANUP_FD int sparse = -1;
    struct stat status;
    struct stat original;
    char link[32] = "";

    (void)state;
    scratch_file(from, "a/b/c.txt", "text");
    scratch_file(from, "run", "#!");
    scratch_file(from, ".deps/x", "");
    scratch_file(from, "secret", "");
    scratch_file(from, "sparse", "start");
    assert_int_equal(fchmodat(from, "run", 04755, 0), 0);
    assert_int_equal(fchmodat(from, "secret", 0, 0), 0);
    assert_int_equal(symlinkat("/etc/passwd", from, "link"), 0);
    assert_int_equal(linkat(from, "run", from, "twin", 0), 0);
    assert_int_equal(mkfifoat(from, "p", 0600), 0);
    sparse = openat(from, "sparse", O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(sparse, "end", 3, 1 << 28), 3);
    assert_int_equal(fchmodat(from, "a/b", 0555, 0), 0);
    assert_int_equal(copy_tree(from, to, &options, &result, NULL), 0);
    assert_int_equal(result.left_out, 2);
    assert_string_equal(scratch_text(to, "a/b/c.txt"), "text");
    assert_false(scratch_has(to, ".deps"));
    assert_int_equal(readlinkat(to, "link", link, sizeof(link)), 11);
    assert_int_equal(fstatat(to, "run", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
    assert_int_equal(status.st_nlink, 1);
    assert_int_equal(fstatat(to, "a/b", &status, 0), 0);
    assert_int_equal(fstatat(from, "a/b", &original, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0555);
    assert_int_equal(status.st_mtim.tv_nsec, original.st_mtim.tv_nsec);
    assert_int_equal(fstatat(to, "sparse", &status, 0), 0);
    assert_int_equal(status.st_size, (1 << 28) + 3);
    assert_true(status.st_blocks * 512 < 1 << 20);
    assert_int_equal(fchmodat(from, "a/b", 0700, 0), 0);
}

static void a_copy_within_bounds(void **state)
{
    struct copy_options options = { .max_bytes = 4 };
    struct copy_result result;
    CLEANUP_FD int from = open_directory("from");
    CLEANUP_FD int to = open_directory("to");
    struct err err = ERR_INIT;
    struct cancel cancel;

    (void)state;
    scratch_file(from, "a", "12345");
    assert_int_equal(copy_tree(from, to, &options, &result, &err), -1);
    assert_int_equal(err.code, ERR_WORKSPACE_FULL);
    assert_int_equal(cancel_init(&cancel, NULL), 0);
    cancel_fire(&cancel, CANCEL_REQUESTED);
    options = (struct copy_options){ .cancel = &cancel };
    assert_int_equal(copy_tree(from, to, &options, &result, &err), -1);
    assert_int_equal(err.code, ERR_CANCELLED);
    cancel_done(&cancel);
}

static void contents_are_replaced(void **state)
{
    CLEANUP_FD int root = open_directory("root");
    CLEANUP_FD int new = -1;

    (void)state;
    scratch_file(root, "kept-name", "old");
    scratch_file(root, "gone/x", "old");
    assert_int_equal(fchmodat(root, "gone", 0555, 0), 0);
    scratch_file(root, REPLACE_NEW "/left by a crash", "");
    assert_int_equal(replace_begin(root, &new, NULL), 0);
    scratch_file(new, "kept-name", "new");
    scratch_file(new, "added/y", "new");
    assert_int_equal(fchmodat(new, "added", 0555, 0), 0);
    assert_string_equal(scratch_text(root, "kept-name"), "old");
    assert_int_equal(replace_commit(root, NULL), 0);
    replace_end(root);
    assert_string_equal(scratch_text(root, "kept-name"), "new");
    assert_string_equal(scratch_text(root, "added/y"), "new");
    assert_false(scratch_has(root, "gone"));
    assert_false(scratch_has(root, "left by a crash"));
    assert_false(scratch_has(root, REPLACE_NEW));
    assert_false(scratch_has(root, REPLACE_OLD));
    assert_int_equal(fchmodat(root, "added", 0700, 0), 0);
}

static void a_replacement_that_is_given_up(void **state)
{
    CLEANUP_FD int root = open_directory("root");
    CLEANUP_FD int new = -1;
    int again = -1;
    struct err err = ERR_INIT;

    (void)state;
    scratch_file(root, "a", "old");
    assert_int_equal(replace_begin(root, &new, NULL), 0);
    scratch_file(new, "a", "new");
    replace_abort(root);
    assert_string_equal(scratch_text(root, "a"), "old");
    assert_false(scratch_has(root, REPLACE_NEW));
    assert_int_equal(replace_commit(root, &err), -1);
    scratch_file(root, REPLACE_OLD "/precious", "");
    assert_int_equal(replace_begin(root, &again, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(again, -1);
}

/* Somebody else's directory can't be moved away: all is as it was. */
static void a_replacement_that_fails(void **state)
{
    CLEANUP_FD int root = open_directory("root");
    CLEANUP_FD int new = -1;
    struct err err = ERR_INIT;

    (void)state;
    if (getuid() != 0) {
        skip();
    }
    for (char name[] = "a"; name[0] <= 'g'; name[0]++) {
        scratch_file(root, name, "old");
    }
    assert_int_equal(mkdirat(root, "theirs", 0700), 0);
    assert_int_equal(replace_begin(root, &new, NULL), 0);
    scratch_file(new, "a", "new");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(fchownat(root, "theirs", 0, 0, 0), 0);
    assert_int_equal(seteuid(65534), 0);
    assert_int_equal(replace_commit(root, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    for (char name[] = "a"; name[0] <= 'g'; name[0]++) {
        assert_string_equal(scratch_text(root, name), "old");
    }
    assert_true(scratch_has(root, "theirs"));
    replace_abort(root);
}

static void note(void *context, const char *digest)
{
    memcpy(context, digest, 65);
}

static void depots(void **state)
{
    char digest[65];
    char seen[65] = "";
    char path[96];
    char text[8] = "";
    int depot = -1;
    int fd = -1;
    uint64_t size = 0;
    struct err err = ERR_INIT;

    (void)state;
    memset(digest, 'a', sizeof(digest));
    digest[64] = '\0';
    (void)snprintf(path, sizeof(path), "%s/depot", scratch_path);
    assert_int_equal(depot_open(path, &depot, NULL), 0);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(depot_begin(depot, &fd, NULL), 0);
        assert_int_equal(write(fd, "bytes", 5), 5);
        assert_int_equal(depot_keep(depot, fd, digest, NULL), 0);
        fd_close(fd);
    }
    assert_int_equal(depot_begin(depot, &fd, NULL), 0);
    assert_int_equal(depot_keep(depot, fd, "../x", &err), -1);
    fd_close(fd);
    assert_int_equal(depot_each(depot, note, seen, NULL), 0);
    assert_string_equal(seen, digest);
    assert_int_equal(depot_get(depot, digest, &fd, &size, NULL), 0);
    assert_int_equal(size, 5);
    depot_remove(depot, digest);
    assert_int_equal(read(fd, text, sizeof(text)), 5);
    fd_close(fd);
    assert_int_equal(depot_get(depot, digest, &fd, &size, &err), -1);
    assert_int_equal(err.code, ERR_SNAPSHOT_NOT_FOUND);
    fd_close(depot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_copy_is_the_same, scratch_fresh),
        cmocka_unit_test_setup(a_copy_within_bounds, scratch_fresh),
        cmocka_unit_test_setup(contents_are_replaced, scratch_fresh),
        cmocka_unit_test_setup(a_replacement_that_is_given_up, scratch_fresh),
        cmocka_unit_test_setup(a_replacement_that_fails, scratch_fresh),
        cmocka_unit_test_setup(depots, scratch_fresh),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
