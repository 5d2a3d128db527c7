/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replace: moves the entries of a directory out and others in.
 * Owns: REPLACE_NEW and REPLACE_OLD in the directory while it goes on.
 * Threads: any, one at a time for a directory.
 * May include: base.
 */
#include "lib/work/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/strv.h"
#include "lib/base/text.h"
#include "lib/work/fail.h"
#include "lib/work/move.h"
#include "lib/work/remove.h"

static int open_directory(int root, const char *name)
{
    return fd_open_beneath(root, name, O_RDONLY | O_DIRECTORY, 0);
}

/* All names in a directory but our own two. 0 or -1 with errno. */
static int names_in(int directory, struct strv *names)
{
    CLEANUP_DIR DIR *dir = fd_take_dir(open_directory(directory, "."));
    const struct dirent *entry;

    if (dir == NULL) {
        return -1;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (!text_equal(entry->d_name, ".") && !text_equal(entry->d_name, "..") &&
            !text_equal(entry->d_name, REPLACE_NEW) && !text_equal(entry->d_name, REPLACE_OLD)) {
            strv_add(names, entry->d_name);
        }
    }
    return 0;
}

static int make(int root, const char *name, struct err *err)
{
    if (mkdirat(root, name, S_IRWXU) < 0) {
        return fail_errno(err, errno, "the contents cannot be replaced");
    }
    return 0;
}

/* Clears what a crash left under our two names. 0 or -1. */
static int clear(int root, struct err *err)
{
    struct remove_left left;

    if (unlinkat(root, REPLACE_OLD, AT_REMOVEDIR) < 0 && errno != ENOENT) {
        (void)err_set(err, ERR_CONFLICT, errno,
                      "an earlier replacement was interrupted; its old files are in " REPLACE_OLD);
        return err_remedy(err, "move what you need out of " REPLACE_OLD ", delete it, try again");
    }
    (void)remove_tree(root, REPLACE_NEW, NULL, &left);
    return 0;
}

int replace_begin(int root, int *ret_new, struct err *err)
{
    int fd;

    if (clear(root, err) < 0 || make(root, REPLACE_NEW, err) < 0) {
        return -1;
    }
    fd = open_directory(root, REPLACE_NEW);
    if (fd < 0) {
        return fail_errno(err, errno, "the contents cannot be replaced");
    }
    *ret_new = fd;
    return 0;
}

int replace_adopt(int root, int parent, const char *name, struct err *err)
{
    if (clear(root, err) < 0) {
        return -1;
    }
    if (renameat(parent, name, root, REPLACE_NEW) < 0) {
        return fail_errno(err, errno, "the contents cannot be replaced");
    }
    return 0;
}

/* How many of the names were moved before the first failure (all: errno untouched). */
static size_t move_all(int from, int to, const struct strv *names)
{
    char *const *items = strv_argv(names);
    size_t moved = 0;

    while (items[moved] != NULL && move_entry(from, to, items[moved]) == 0) {
        moved++;
    }
    return moved;
}

/* Takes the first `count` back, in reverse. */
static void move_back(int from, int to, const struct strv *names, size_t count)
{
    char *const *items = strv_argv(names);

    while (count > 0) {
        (void)move_entry(from, to, items[--count]);
    }
}

/* 0, or -1 with errno and everything as it was. */
static int swap(int root, int new, int old)
{
    CLEANUP_STRV struct strv out = { .items = NULL };
    CLEANUP_STRV struct strv in = { .items = NULL };
    size_t moved_out;
    size_t moved_in = 0;
    int sys;

    if (names_in(root, &out) < 0 || names_in(new, &in) < 0) {
        return -1;
    }
    moved_out = move_all(root, old, &out);
    if (moved_out == out.count) {
        moved_in = move_all(new, root, &in);
        if (moved_in == in.count) {
            return 0;
        }
    }
    sys = errno;
    move_back(root, new, &in, moved_in);
    move_back(old, root, &out, moved_out);
    errno = sys;
    return -1;
}

int replace_commit(int root, struct err *err)
{
    CLEANUP_FD int new = open_directory(root, REPLACE_NEW);
    CLEANUP_FD int old = -1;

    if (new < 0) {
        return fail_errno(err, errno, "the contents cannot be replaced");
    }
    if (make(root, REPLACE_OLD, err) < 0) {
        return -1;
    }
    old = open_directory(root, REPLACE_OLD);
    if (old < 0 || swap(root, new, old) < 0) {
        (void)fail_errno(err, errno, "the contents cannot be replaced");
        (void)unlinkat(root, REPLACE_OLD, AT_REMOVEDIR);
        return -1;
    }
    (void)unlinkat(root, REPLACE_NEW, AT_REMOVEDIR);
    return 0;
}

void replace_end(int root)
{
    struct remove_left left;

    (void)remove_tree(root, REPLACE_OLD, NULL, &left);
}

void replace_abort(int root)
{
    struct remove_left left;

    (void)remove_tree(root, REPLACE_NEW, NULL, &left);
}
