/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/work/workspace.h"
#include "tests/unit/scratch.h"

static unsigned mode_of(int dir, const char *name)
{
    struct stat status;

    assert_int_equal(fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW), 0);
    return status.st_mode & 07777;
}

static void create_and_open(void **state)
{
    CLEANUP_FD int parent = scratch_workspaces();
    CLEANUP_FD int again = scratch_workspaces();
    CLEANUP_FD int created = -1;
    CLEANUP_FD int opened = -1;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(workspace_create(parent, "ses_1", &created, NULL), 0);
    assert_int_equal(mode_of(parent, "ses_1"), 0700);
    assert_int_equal(mode_of(scratch_fd, "workspaces"), 0700);
    assert_int_equal(workspace_create(parent, "ses_1", &opened, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(opened, -1);
    assert_int_equal(workspace_open(again, "ses_1", &opened, NULL), 0);
    scratch_file(created, "x", "1");
    assert_string_equal(scratch_text(opened, "x"), "1");
    assert_int_equal(fcntl(opened, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

static void names_that_are_refused(void **state)
{
    static const char *const bad[] = { "", ".", "..", "a/b", "/a", "../a", WORKSPACE_TRASH };
    CLEANUP_FD int parent = scratch_workspaces();
    struct err err = ERR_INIT;
    int fd = -1;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(workspace_create(parent, bad[i], &fd, &err), -1);
        assert_int_equal(err.code, ERR_BAD_PATH);
        assert_int_equal(workspace_discard(parent, bad[i], &err), -1);
        assert_int_equal(err.code, ERR_BAD_PATH);
    }
    assert_int_equal(workspace_open(parent, "none", &fd, &err), -1);
    assert_int_equal(err.code, ERR_FILE_NOT_FOUND);
    assert_int_equal(symlinkat("/etc", parent, "link"), 0);
    assert_int_equal(workspace_open(parent, "link", &fd, &err), -1);
    assert_int_equal(err.code, ERR_BAD_PATH);
    assert_int_equal(fd, -1);
}

static void opening_one_without_rights(void **state)
{
    CLEANUP_FD int parent = scratch_workspaces();
    CLEANUP_FD int created = -1;
    CLEANUP_FD int opened = -1;

    (void)state;
    assert_int_equal(workspace_create(parent, "w", &created, NULL), 0);
    assert_int_equal(fchmod(created, 0), 0);
    assert_int_equal(workspace_open(parent, "w", &opened, NULL), 0);
    scratch_file(opened, "x", "1");
}

static void fill_with_bad_modes(int dir)
{
    scratch_file(dir, "d/e/f", "x");
    scratch_file(dir, "go/mod/m", "y");
    scratch_file(dir, "go/mod/\xff\n\"", "y");
    assert_int_equal(mkdirat(dir, "empty", 0), 0);
    assert_int_equal(mkfifoat(dir, "fifo", 0), 0);
    assert_int_equal(symlinkat("/etc/passwd", dir, "d/link"), 0);
    assert_int_equal(symlinkat("..", dir, "d/up"), 0);
    assert_int_equal(fchmodat(dir, "d/e/f", 0, 0), 0);
    assert_int_equal(fchmodat(dir, "d/e", 0, 0), 0);
    assert_int_equal(fchmodat(dir, "d", 0100, 0), 0);
    assert_int_equal(fchmodat(dir, "go/mod", 0555, 0), 0);
    assert_int_equal(fchmodat(dir, "go", 0555, 0), 0);
    assert_int_equal(fchmod(dir, 0555), 0);
}

static void discard_and_purge_bad_modes(void **state)
{
    CLEANUP_FD int parent = scratch_workspaces();
    CLEANUP_FD int dir = -1;
    struct remove_left left;

    (void)state;
    assert_int_equal(workspace_create(parent, "w", &dir, NULL), 0);
    fill_with_bad_modes(dir);
    assert_int_equal(workspace_discard(parent, "w", NULL), 0);
    assert_false(scratch_has(parent, "w"));
    assert_int_equal(workspace_discard(parent, "w", NULL), 0);
    assert_int_equal(workspace_purge(parent, NULL, &left), 0);
    assert_int_equal(left.count, 0);
    assert_int_equal(unlinkat(parent, WORKSPACE_TRASH, AT_REMOVEDIR), 0); /* it was empty */
}

static void removal_at_once(void **state)
{
    CLEANUP_FD int parent = scratch_workspaces();
    CLEANUP_FD int dir = -1;
    struct remove_left left;

    (void)state;
    assert_int_equal(workspace_create(parent, "w", &dir, NULL), 0);
    fill_with_bad_modes(dir);
    assert_int_equal(fchmod(dir, 0), 0);
    assert_int_equal(workspace_remove(parent, "w", &left), 0);
    assert_false(scratch_has(parent, "w"));
    assert_int_equal(workspace_remove(parent, "w", &left), 0);
    assert_int_equal(unlinkat(parent, WORKSPACE_TRASH, AT_REMOVEDIR), 0);
}

/* A chain far longer than PATH_MAX and than any stack of descriptors or frames, closed on top. */
static void very_deep(void **state)
{
    struct remove_left left;
    CLEANUP_FD int dir = dup(scratch_fd);

    (void)state;
    for (int i = 0; i < 3000; i++) {
        int next;

        assert_int_equal(mkdirat(dir, "deep", 0700), 0);
        next = openat(dir, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        if (i % 100 == 50) {
            scratch_file(next, "file", "x");
            assert_int_equal(fchmod(next, 0700), 0);
        }
        if (i % 7 == 3) {
            assert_int_equal(fchmod(dir, i % 2 == 0 ? 0 : 0500), 0);
        }
        fd_close(dir);
        dir = next;
    }
    assert_int_equal(remove_tree(scratch_fd, "deep", NULL, &left), 0);
    assert_int_equal(left.count, 0);
    assert_false(scratch_has(scratch_fd, "deep"));
}

static void very_many(void **state)
{
    struct remove_left left;
    char name[32];

    (void)state;
    scratch_file(scratch_fd, "many/first", "");
    for (int i = 0; i < 20000; i++) {
        (void)snprintf(name, sizeof(name), "many/%d", i);
        assert_int_equal(
            i % 10 == 0 ? mkdirat(scratch_fd, name, 0) : symlinkat("x", scratch_fd, name), 0);
    }
    assert_int_equal(remove_tree(scratch_fd, "many", NULL, &left), 0);
    assert_false(scratch_has(scratch_fd, "many"));
}

static void links_are_not_followed(void **state)
{
    struct remove_left left;

    (void)state;
    scratch_file(scratch_fd, "outside/kept", "x");
    scratch_file(scratch_fd, "tree/a", "x");
    assert_int_equal(symlinkat("../outside", scratch_fd, "tree/link"), 0);
    assert_int_equal(symlinkat("outside", scratch_fd, "link"), 0);
    assert_int_equal(remove_tree(scratch_fd, "tree", NULL, &left), 0);
    assert_int_equal(remove_tree(scratch_fd, "link", NULL, &left), 0);
    assert_int_equal(remove_tree(scratch_fd, "none", NULL, &left), 0);
    assert_true(scratch_has(scratch_fd, "outside/kept"));
    assert_false(scratch_has(scratch_fd, "tree"));
    assert_false(scratch_has(scratch_fd, "link"));
}

/* Entries of somebody else in a sticky directory stand for all that really can't be removed. */
static void what_cannot_be_removed_is_told(void **state)
{
    struct remove_left left;

    (void)state;
    if (getuid() != 0) {
        skip();
    }
    scratch_file(scratch_fd, "tree/a/mine", "x");
    scratch_file(scratch_fd, "tree/b/c/theirs", "x");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(fchownat(scratch_fd, "tree/b/c/theirs", 0, 0, 0), 0);
    assert_int_equal(fchownat(scratch_fd, "tree/b/c", 0, 0, 0), 0);
    assert_int_equal(fchmodat(scratch_fd, "tree/b/c", 01755, 0), 0);
    assert_int_equal(seteuid(65534), 0);
    assert_int_equal(remove_tree(scratch_fd, "tree", NULL, &left), -1);
    assert_int_equal(left.count, 1);
    assert_int_equal(left.sys, EACCES);
    assert_string_equal(left.first, "tree/b/c/theirs");
    assert_false(scratch_has(scratch_fd, "tree/a"));
}

static void a_removal_can_be_stopped(void **state)
{
    struct remove_left left;
    struct cancel cancel;

    (void)state;
    assert_int_equal(cancel_init(&cancel, NULL), 0);
    cancel_fire(&cancel, CANCEL_SHUTDOWN);
    scratch_file(scratch_fd, "tree/a/b", "x");
    assert_int_equal(remove_tree(scratch_fd, "tree", &cancel, &left), -1);
    assert_int_equal(left.sys, ECANCELED);
    assert_true(scratch_has(scratch_fd, "tree/a/b"));
    cancel_done(&cancel);
}

static void exchange(void **state)
{
    CLEANUP_FD int parent = scratch_workspaces();
    CLEANUP_FD int old = -1;
    CLEANUP_FD int new = -1;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(workspace_create(parent, "old", &old, NULL), 0);
    assert_int_equal(workspace_create(parent, "new", &new, NULL), 0);
    scratch_file(old, "x", "old");
    scratch_file(new, "x", "new");
    assert_int_equal(fchmod(old, 0555), 0);
    assert_int_equal(workspace_exchange(parent, "old", "new", NULL), 0);
    assert_string_equal(scratch_text(parent, "old/x"), "new");
    assert_string_equal(scratch_text(parent, "new/x"), "old");
    assert_string_equal(scratch_text(old, "x"), "old");
    assert_int_equal(workspace_exchange(parent, "old", "none", &err), -1);
    assert_int_equal(err.code, ERR_FILE_NOT_FOUND);
    assert_int_equal(workspace_exchange(parent, "old", "../x", &err), -1);
    assert_int_equal(err.code, ERR_BAD_PATH);
}

static void note(void *context, const char *name)
{
    char *seen = context;

    strncat(seen, name, 15);
}

static void every_workspace_is_visited(void **state)
{
    CLEANUP_FD int parent = scratch_workspaces();
    char seen[64] = "";
    int fd = -1;

    (void)state;
    assert_int_equal(workspace_each(parent, note, seen, NULL), 0);
    assert_string_equal(seen, "");
    assert_int_equal(workspace_create(parent, "one", &fd, NULL), 0);
    fd_close(fd);
    assert_int_equal(workspace_discard(parent, "one", NULL), 0);
    assert_int_equal(workspace_create(parent, "two", &fd, NULL), 0);
    fd_close(fd);
    assert_int_equal(workspace_each(parent, note, seen, NULL), 0);
    assert_string_equal(seen, "two");
}

static void what_nobody_owns(void **state)
{
    CLEANUP_FD int parent = scratch_workspaces();
    CLEANUP_FD int lost = -1;
    CLEANUP_FD int made = -1;
    CLEANUP_FD int other = -1;
    DIR *dir;
    const struct dirent *entry;
    size_t count = 0;

    (void)state;
    assert_int_equal(workspace_create(parent, "empty", &other, NULL), 0);
    assert_int_equal(workspace_set_aside(parent, "empty", NULL), 0);
    assert_int_equal(workspace_set_aside(parent, "empty", NULL), 0);
    assert_int_equal(faccessat(parent, WORKSPACE_LOST, F_OK, 0), -1); /* nothing to keep */
    assert_int_equal(workspace_set_aside(parent, WORKSPACE_LOST, NULL), -1);
    for (int i = 0; i < 2; i++) { /* also twice the same name */
        assert_int_equal(workspace_create(parent, "full", &made, NULL), 0);
        scratch_file(made, "x", "1");
        assert_int_equal(fchmod(made, i == 0 ? 0555 : 0), 0);
        fd_clear(&made);
        assert_int_equal(workspace_set_aside(parent, "full", NULL), 1);
    }
    lost = openat(parent, WORKSPACE_LOST, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(lost >= 0);
    dir = fdopendir(CLEANUP_TAKE_FD(lost));
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        count += strncmp(entry->d_name, "full.", 5) == 0 ? 1 : 0;
    }
    assert_int_equal(closedir(dir), 0);
    assert_int_equal(count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(create_and_open, scratch_fresh),
        cmocka_unit_test_setup(names_that_are_refused, scratch_fresh),
        cmocka_unit_test_setup(opening_one_without_rights, scratch_fresh),
        cmocka_unit_test_setup(discard_and_purge_bad_modes, scratch_fresh),
        cmocka_unit_test_setup(removal_at_once, scratch_fresh),
        cmocka_unit_test_setup(very_deep, scratch_fresh),
        cmocka_unit_test_setup(very_many, scratch_fresh),
        cmocka_unit_test_setup(links_are_not_followed, scratch_fresh),
        cmocka_unit_test_setup(what_cannot_be_removed_is_told, scratch_fresh),
        cmocka_unit_test_setup(a_removal_can_be_stopped, scratch_fresh),
        cmocka_unit_test_setup(what_nobody_owns, scratch_fresh),
        cmocka_unit_test_setup(exchange, scratch_fresh),
        cmocka_unit_test_setup(every_workspace_is_visited, scratch_fresh),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
