/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files: stat, open, read, delete, move and make single things beneath a workspace.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/work/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/work/fail.h"
#include "lib/work/path.h"
#include "lib/work/remove.h"

#define DIRECTORY_MODE 0755

/* For a reader, a path through a file is just not there. */
static int sys_for_reader(int sys)
{
    return sys == ENOTDIR ? ENOENT : sys;
}

int files_stat(int root, const char *path, struct entry *ret_entry, struct err *err)
{
    /* With both flags a link at the end is opened itself, in spite of NO_SYMLINKS (openat2(2)). */
    CLEANUP_FD int fd = fd_open_beneath(root, path, O_PATH | O_NOFOLLOW, 0);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0) {
        return fail_errno(err, sys_for_reader(errno), "the path cannot be looked at");
    }
    entry_from_stat(&status, ret_entry);
    return 0;
}

static int refuse_type(const struct stat *status, struct err *err)
{
    return err_set(err, ERR_BAD_PATH, 0, "the path names a %s, not a regular file",
                   entry_type_text(entry_type_of(status->st_mode)));
}

int files_open(int root, const char *path, int *ret_fd, struct entry *ret_entry, struct err *err)
{
    /* O_NONBLOCK: opening a FIFO returns at once (fifo(7)); it means nothing to regular files. */
    CLEANUP_FD int fd = fd_open_beneath(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    struct stat status;

    if (fd < 0) {
        return fail_errno(err, sys_for_reader(errno), "the file cannot be opened");
    }
    if (fstat(fd, &status) < 0) {
        return fail_errno(err, errno, "the file cannot be looked at");
    }
    if (!S_ISREG(status.st_mode)) {
        return refuse_type(&status, err);
    }
    if (ret_entry != NULL) {
        entry_from_stat(&status, ret_entry);
    }
    *ret_fd = CLEANUP_TAKE_FD(fd);
    return 0;
}

int files_read(int root, const char *path, struct buf *out, struct entry *ret_entry,
               struct err *err)
{
    CLEANUP_FD int fd = -1;
    struct entry entry;

    if (files_open(root, path, &fd, &entry, err) < 0) {
        return -1;
    }
    if (entry.size > out->max - out->size) {
        return err_set(err, ERR_BODY_TOO_LARGE, 0, "the file has %llu bytes, more than %zu",
                       (unsigned long long)entry.size, out->max - out->size);
    }
    if (fd_read_to_end(fd, out, err) < 0) {
        return -1;
    }
    if (ret_entry != NULL) {
        *ret_entry = entry;
    }
    return 0;
}

/* One more directory on the way. The new one is opened for reading, since fchmod refuses O_PATH. */
static int make_step(int directory, const char *name)
{
    int fd = fd_open_beneath(directory, name, O_PATH | O_DIRECTORY, 0);

    if (fd >= 0 || errno != ENOENT) {
        return fd;
    }
    if (mkdirat(directory, name, DIRECTORY_MODE) < 0) {
        return errno == EEXIST ? fd_open_beneath(directory, name, O_PATH | O_DIRECTORY, 0) : -1;
    }
    fd = fd_open_beneath(directory, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd >= 0) {
        (void)fchmod(fd, DIRECTORY_MODE); /* the server's umask took bits away */
    }
    return fd;
}

/* Opens `path` below root as a directory, making what is missing. The descriptor or -1, errno. */
static int make_way(int root, const char *path)
{
    CLEANUP_FD int at = fd_open_beneath(root, path, O_PATH | O_DIRECTORY, 0);
    char name[PATH_COMPONENT_MAX + 1];

    if (at >= 0 || errno != ENOENT) {
        return CLEANUP_TAKE_FD(at);
    }
    at = fd_open_beneath(root, ".", O_PATH | O_DIRECTORY, 0);
    while (at >= 0 && *path != '\0') {
        const char *end = strchrnul(path, '/');
        int next;

        (void)snprintf(name, sizeof(name), "%.*s", (int)(end - path), path);
        next = make_step(at, name);
        fd_clear(&at);
        at = next;
        path = *end == '/' ? end + 1 : end;
    }
    return CLEANUP_TAKE_FD(at);
}

int files_open_parent(int root, const char *path, bool make, int *ret_fd, struct err *err)
{
    CLEANUP_FREE char *parent = path_parent(path);
    int fd = make ? make_way(root, parent) : fd_open_beneath(root, parent, O_PATH | O_DIRECTORY, 0);

    if (fd < 0) {
        return fail_errno(err, make ? errno : sys_for_reader(errno),
                          make ? "the directory for it cannot be made"
                               : "the directory of it cannot be opened");
    }
    *ret_fd = fd;
    return 0;
}

static int delete_tree(int parent, const char *name, struct err *err)
{
    struct remove_left left;
    struct stat status;

    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        return fail_errno(err, errno, "the path cannot be deleted");
    }
    if (remove_tree(parent, name, NULL, &left) < 0) {
        return err_set(err, left.sys == EACCES || left.sys == EPERM ? ERR_FORBIDDEN : ERR_IO,
                       left.sys, "%llu entries could not be deleted: %s",
                       (unsigned long long)left.count, err_errno_text(left.sys));
    }
    return 0;
}

int files_delete(int root, const char *path, bool recursive, struct err *err)
{
    CLEANUP_FD int parent = -1;
    const char *name = path_base(path);

    if (files_open_parent(root, path, false, &parent, err) < 0) {
        return -1;
    }
    if (recursive) {
        return delete_tree(parent, name, err);
    }
    if (unlinkat(parent, name, 0) == 0) {
        return 0;
    }
    if (errno == EISDIR && unlinkat(parent, name, AT_REMOVEDIR) == 0) {
        return 0;
    }
    (void)fail_errno(err, errno, "the path cannot be deleted");
    if (errno == ENOTEMPTY) {
        (void)err_remedy(err, "ask for a recursive deletion");
    }
    return -1;
}

int files_move(int root, const char *from, const char *to, bool overwrite, struct err *err)
{
    static const char cannot[] = "it cannot be moved";
    CLEANUP_FD int from_parent = -1;
    CLEANUP_FD int to_parent = -1;
    struct stat status;

    if (files_open_parent(root, from, false, &from_parent, err) < 0) {
        return -1;
    }
    /* Before directories are made for nothing. */
    if (fstatat(from_parent, path_base(from), &status, AT_SYMLINK_NOFOLLOW) < 0) {
        return fail_errno(err, errno, cannot);
    }
    if (path_is_beneath(to, from) && !text_equal(to, from)) {
        return err_set(err, ERR_BAD_PATH, EINVAL, "%s into itself", cannot);
    }
    if (files_open_parent(root, to, true, &to_parent, err) < 0) {
        return -1;
    }
    if (renameat2(from_parent, path_base(from), to_parent, path_base(to),
                  overwrite ? 0 : RENAME_NOREPLACE) < 0) {
        return fail_errno(err, errno, cannot);
    }
    return 0;
}

int files_make_directory(int root, const char *path, bool *ret_created, struct err *err)
{
    CLEANUP_FD int there = fd_open_beneath(root, path, O_PATH | O_DIRECTORY, 0);
    CLEANUP_FD int made = -1;

    if (there >= 0) {
        *ret_created = false;
        return 0;
    }
    made = make_way(root, path);
    if (made < 0) {
        return fail_errno(err, errno, "the directory cannot be made");
    }
    *ret_created = true;
    return 0;
}
