/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/work/copy.h"
#include "lib/work/depot.h"
#include "lib/work/remove.h"
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

/* ---- shared blocks ---- */

/*
 * What file systems answer to FICLONE (ioctl_ficlonerange(2)), whatever the one here can: in place
 * of the C library's ioctl(2). Copies without it are counted.
 */
static bool kernel_answers = true;
static int clone_errno; /* 0: it is done */
static unsigned clones;
static unsigned copies;

static int clone_file(int to, int from)
{
    char bytes[64] = "";
    struct stat status;
    ssize_t got;

    clones++;
    if (clone_errno != 0) {
        errno = clone_errno;
        return -1;
    }
    assert_int_equal(fstat(from, &status), 0);
    got = pread(from, bytes, sizeof(bytes), 0);
    assert_int_equal(pwrite(to, bytes, (size_t)got, 0), got);
    return ftruncate(to, status.st_size + 1); /* it grew since it was looked at */
}

int ioctl(int fd, unsigned long request, ...)
{
    unsigned long argument;
    va_list arguments;

    va_start(arguments, request);
    argument = va_arg(arguments, unsigned long);
    va_end(arguments);
    return request == FICLONE && !kernel_answers ? clone_file(fd, (int)argument)
                                                 : (int)syscall(SYS_ioctl, fd, request, argument);
}

ssize_t copy_file_range(int from, off_t *at, int to, off_t *to_at, size_t size, unsigned flags)
{
    copies++;
    return syscall(SYS_copy_file_range, from, at, to, to_at, size, flags);
}

/* Copies four files, three of them with data, and looks whether they are the same. */
static void copy_files(void)
{
    static const struct timespec times[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
    static const struct copy_options options = { .max_bytes = 1 << 20 };
    CLEANUP_FD int from = open_directory("from");
    CLEANUP_FD int to = -1;
    CLEANUP_FD int sparse = -1;
    struct remove_left left;
    struct copy_result result;
    struct stat status;

    (void)remove_tree(scratch_fd, "to", NULL, &left);
    to = open_directory("to");
    scratch_file(from, "d/a", "text");
    scratch_file(from, "empty", "");
    scratch_file(from, "run", "#!/bin/sh");
    scratch_file(from, "sparse", "start");
    sparse = openat(from, "sparse", O_RDWR | O_CLOEXEC);
    assert_int_equal(ftruncate(sparse, 1 << 28), 0);
    assert_int_equal(fchmodat(from, "run", 0755, 0), 0);
    assert_int_equal(utimensat(from, "run", times, 0), 0);
    clones = copies = 0;
    assert_int_equal(copy_tree(from, to, &options, &result, NULL), 0);
    assert_int_equal(result.left_out, 0);
    assert_string_equal(scratch_text(to, "d/a"), "text");
    assert_string_equal(scratch_text(to, "run"), "#!/bin/sh");
    assert_int_equal(fstatat(to, "run", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
    assert_int_equal(status.st_mtim.tv_sec, 1000000000);
    assert_int_equal(fstatat(to, "sparse", &status, 0), 0);
    assert_int_equal(status.st_size, 1 << 28);
    assert_true(status.st_blocks * 512 < 1 << 20);
    assert_int_equal(fstatat(to, "empty", &status, 0), 0);
    assert_int_equal(status.st_size, 0);
}

static void what_is_cloned_is_not_copied(void **state)
{
    (void)state;
    kernel_answers = false;
    clone_errno = 0;
    copy_files();
    assert_int_equal(clones, 4);
    assert_int_equal(copies, 0);
    kernel_answers = true;
}

static void what_can_not_be_cloned_is_copied(void **state)
{
    static const int answers[] = { EOPNOTSUPP, EXDEV, EINVAL, ENOTTY, EPERM, ETXTBSY, EIO };

    (void)state;
    kernel_answers = false;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        clone_errno = answers[i];
        copy_files();
        assert_int_equal(clones, 4);
        assert_true(copies >= 3);
    }
    kernel_answers = true;
}

/* Do all blocks of a file belong to another one, too? */
static bool is_shared(int directory, const char *name)
{
    const size_t extents = 16;
    CLEANUP_FREE struct fiemap *found =
        alloc_zero(1, sizeof(*found) + extents * sizeof(found->fm_extents[0]));
    CLEANUP_FD int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    unsigned shared = 0;

    found->fm_length = FIEMAP_MAX_OFFSET;
    found->fm_flags = FIEMAP_FLAG_SYNC;
    found->fm_extent_count = (unsigned)extents;
    if (ioctl(fd, FS_IOC_FIEMAP, found) < 0) {
        return false; /* it can't tell; neither can it share (tmpfs) */
    }
    for (unsigned i = 0; i < found->fm_mapped_extents; i++) {
        shared += (found->fm_extents[i].fe_flags & FIEMAP_EXTENT_SHARED) != 0;
    }
    return shared > 0 && shared == found->fm_mapped_extents;
}

/* By what the file system here answers. */
static void blocks_are_shared_where_they_can_be(void **state)
{
    CLEANUP_FREE char *text = alloc_zero(1, 1 << 20);
    CLEANUP_FD int from = open_directory("from");
    CLEANUP_FD int to = open_directory("to");
    struct copy_options options = { .max_bytes = 0 };
    struct copy_result result;
    bool can;

    (void)state;
    memset(text, 'x', (1 << 20) - 1);
    scratch_file(from, "big", text);
    {
        CLEANUP_FD int big = openat(from, "big", O_RDONLY | O_CLOEXEC);
        CLEANUP_FD int probe =
            openat(scratch_fd, "probe", O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);

        can = ioctl(probe, FICLONE, big) == 0;
        assert_int_equal(unlinkat(scratch_fd, "probe", 0), 0);
    }
    assert_int_equal(copy_tree(from, to, &options, &result, NULL), 0);
    assert_int_equal(is_shared(to, "big"), can);
    assert_int_equal(is_shared(from, "big"), can);
    /* Written to, the copy is one of its own. */
    {
        CLEANUP_FD int big = openat(to, "big", O_WRONLY | O_CLOEXEC);

        assert_int_equal(pwrite(big, "y", 1, 0), 1);
    }
    {
        CLEANUP_FD int big = openat(from, "big", O_RDONLY | O_CLOEXEC);
        char first = '\0';

        assert_int_equal(read(big, &first, 1), 1);
        assert_int_equal(first, 'x');
    }
}

/* ---- bounds ---- */

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
        cmocka_unit_test_setup(what_is_cloned_is_not_copied, scratch_fresh),
        cmocka_unit_test_setup(what_can_not_be_cloned_is_copied, scratch_fresh),
        cmocka_unit_test_setup(blocks_are_shared_where_they_can_be, scratch_fresh),
        cmocka_unit_test_setup(a_copy_within_bounds, scratch_fresh),
        cmocka_unit_test_setup(contents_are_replaced, scratch_fresh),
        cmocka_unit_test_setup(a_replacement_that_is_given_up, scratch_fresh),
        cmocka_unit_test_setup(a_replacement_that_fails, scratch_fresh),
        cmocka_unit_test_setup(depots, scratch_fresh),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
