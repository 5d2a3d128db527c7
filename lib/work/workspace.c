/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace: making, opening, discarding and purging owned directories.
 * Owns: the layout below the parent: one directory a workspace, and the trash.
 * Threads: any.
 * May include: base.
 */
#include "lib/work/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/id.h"
#include "lib/base/text.h"
#include "lib/work/path.h"

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The state directory is not the client's workspace: its being full is the store's trouble. */
static int fail(struct err *err, int sys, const char *what)
{
    enum err_code code = sys == ENOSPC || sys == EDQUOT ? ERR_STORE_FULL : ERR_IO;

    return err_set(err, code, sys, "%s: %s", what, err_errno_text(sys));
}

static bool is_reserved(const char *name)
{
    return text_equal(name, WORKSPACE_TRASH) || text_equal(name, WORKSPACE_LOST);
}

static int make_trash(int parent, struct err *err)
{
    if (mkdirat(parent, WORKSPACE_TRASH, S_IRWXU) < 0 && errno != EEXIST) {
        return fail(err, errno, "the directory for discarded workspaces cannot be made");
    }
    return 0;
}

int workspace_open_parent(const char *path, int *ret_parent, struct err *err)
{
    CLEANUP_FD int fd = -1;

    if (mkdir(path, S_IRWXU) < 0 && errno != EEXIST) {
        return fail(err, errno, "the directory of workspaces cannot be made");
    }
    fd = open(path, DIRECTORY_FLAGS);
    if (fd < 0) {
        return fail(err, errno, "the directory of workspaces cannot be opened");
    }
    if (make_trash(fd, err) < 0) {
        return -1;
    }
    *ret_parent = CLEANUP_TAKE_FD(fd);
    return 0;
}

int workspace_create(int parent, const char *name, int *ret_directory, struct err *err)
{
    int fd;

    if (!path_is_name(name) || is_reserved(name)) {
        return err_set(err, ERR_BAD_PATH, 0, "not a name for a workspace");
    }
    if (mkdirat(parent, name, S_IRWXU) < 0) {
        if (errno == EEXIST) {
            return err_set(err, ERR_CONFLICT, errno, "a workspace by that name exists");
        }
        return fail(err, errno, "the workspace cannot be made");
    }
    fd = fd_open_beneath(parent, name, DIRECTORY_FLAGS, 0);
    if (fd < 0) {
        int sys = errno;

        (void)unlinkat(parent, name, AT_REMOVEDIR);
        return fail(err, sys, "the new workspace cannot be opened");
    }
    *ret_directory = fd;
    return 0;
}

/* Needs no right to the directory itself: O_PATH, then chmod by way of /proc (open(2)). */
static int give_rights_back(int parent, const char *name)
{
    CLEANUP_FD int handle = fd_open_beneath(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    char link[64];

    if (handle < 0) {
        return -1;
    }
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", handle);
    return chmod(link, S_IRWXU);
}

int workspace_open(int parent, const char *name, int *ret_directory, struct err *err)
{
    int fd;

    if (!path_is_name(name)) {
        return err_set(err, ERR_BAD_PATH, 0, "not a name of a workspace");
    }
    fd = fd_open_beneath(parent, name, DIRECTORY_FLAGS, 0);
    if (fd < 0 && errno == EACCES && give_rights_back(parent, name) == 0) {
        fd = fd_open_beneath(parent, name, DIRECTORY_FLAGS, 0);
    }
    if (fd >= 0) {
        *ret_directory = fd;
        return 0;
    }
    if (errno == ENOENT) {
        return err_set(err, ERR_FILE_NOT_FOUND, errno, "the workspace is not there");
    }
    if (errno == ENOTDIR || errno == ELOOP) {
        return err_set(err, ERR_BAD_PATH, errno, "the workspace is not a directory");
    }
    return fail(err, errno, "the workspace cannot be opened");
}

/* A directory that gets another parent must itself be writable (rename(2)). */
static int rename_away(int parent, const char *name, int trash, const char *new_name)
{
    if (renameat(parent, name, trash, new_name) == 0) {
        return 0;
    }
    if (errno == EACCES && give_rights_back(parent, name) == 0) {
        return renameat(parent, name, trash, new_name);
    }
    return -1;
}

/* 0 and the name in the trash, "" when there was nothing to discard. */
static int discard(int parent, const char *name, char ret_name[static ID_SIZE], struct err *err)
{
    CLEANUP_FD int trash = -1;

    if (!path_is_name(name) || is_reserved(name)) {
        return err_set(err, ERR_BAD_PATH, 0, "not a name of a workspace");
    }
    if (make_trash(parent, err) < 0) {
        return -1;
    }
    trash = fd_open_beneath(parent, WORKSPACE_TRASH, DIRECTORY_FLAGS, 0);
    if (trash < 0) {
        return fail(err, errno, "the directory for discarded workspaces cannot be opened");
    }
    (void)id_make("del", ret_name);
    if (rename_away(parent, name, trash, ret_name) < 0) {
        ret_name[0] = '\0';
        return errno == ENOENT ? 0 : fail(err, errno, "the workspace cannot be discarded");
    }
    return 0;
}

int workspace_discard(int parent, const char *name, struct err *err)
{
    char trashed[ID_SIZE];

    return discard(parent, name, trashed, err);
}

int workspace_discard_part(int parent, int directory, const char *name, struct err *err)
{
    CLEANUP_FD int trash = fd_open_beneath(parent, WORKSPACE_TRASH, DIRECTORY_FLAGS, 0);
    char trashed[ID_SIZE];

    if (trash < 0 || renameat(directory, name, trash, id_make("del", trashed)) < 0) {
        return err_set(err, trash >= 0 && errno == ENOENT ? ERR_FILE_NOT_FOUND : ERR_IO, errno,
                       "it can't be moved away: %s", err_errno_text(errno));
    }
    return 0;
}

int workspace_remove(int parent, const char *name, struct remove_left *ret_left)
{
    CLEANUP_FD int trash = -1;
    char trashed[ID_SIZE];
    struct err err = ERR_INIT;

    if (discard(parent, name, trashed, &err) < 0) {
        *ret_left = (struct remove_left){ .count = 1, .sys = err.sys };
        (void)snprintf(ret_left->first, sizeof(ret_left->first), "%.255s", name);
        return -1;
    }
    if (trashed[0] == '\0') {
        return 0;
    }
    trash = fd_open_beneath(parent, WORKSPACE_TRASH, DIRECTORY_FLAGS, 0);
    return remove_tree(trash, trashed, NULL, ret_left);
}

/* Nothing to keep. Without the right to look, it is taken to have something in it. */
static bool is_empty(int parent, const char *name)
{
    CLEANUP_DIR DIR *dir = fd_take_dir(fd_open_beneath(parent, name, DIRECTORY_FLAGS, 0));
    const struct dirent *entry;

    if (dir == NULL) {
        return errno == ENOENT;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (!text_equal(entry->d_name, ".") && !text_equal(entry->d_name, "..")) {
            return false;
        }
    }
    return true;
}

int workspace_set_aside(int parent, const char *name, struct err *err)
{
    CLEANUP_FREE char *new_name = NULL;
    CLEANUP_FD int lost = -1;
    char id[ID_SIZE];

    if (!path_is_name(name) || is_reserved(name)) {
        return err_set(err, ERR_BAD_PATH, 0, "not a name of a workspace");
    }
    if (is_empty(parent, name)) {
        return workspace_discard(parent, name, err);
    }
    if (mkdirat(parent, WORKSPACE_LOST, S_IRWXU) < 0 && errno != EEXIST) {
        return fail(err, errno, "the directory for lost workspaces cannot be made");
    }
    lost = fd_open_beneath(parent, WORKSPACE_LOST, DIRECTORY_FLAGS, 0);
    new_name = alloc_printf("%.200s.%s", name, id_make("lost", id));
    if (lost < 0 || rename_away(parent, name, lost, new_name) < 0) {
        return errno == ENOENT ? 0 : fail(err, errno, "the workspace cannot be set aside");
    }
    return 1;
}

static void add_left(struct remove_left *sum, const struct remove_left *more)
{
    uint64_t count = sum->count + more->count;

    if (sum->count == 0) {
        *sum = *more;
    }
    sum->count = count;
}

int workspace_purge(int parent, struct cancel *cancel, struct remove_left *ret_left)
{
    CLEANUP_DIR DIR *trash =
        fd_take_dir(fd_open_beneath(parent, WORKSPACE_TRASH, DIRECTORY_FLAGS, 0));
    struct remove_left sum = { .count = 0 };
    const struct dirent *entry;
    int result = 0;

    if (trash == NULL) {
        sum = (struct remove_left){ .count = 1, .sys = errno, .first = WORKSPACE_TRASH };
        *ret_left = sum;
        return -1;
    }
    while ((entry = readdir(trash)) != NULL && cancel_get(cancel) == CANCEL_NONE) {
        struct remove_left left;

        if (path_is_name(entry->d_name) &&
            remove_tree(dirfd(trash), entry->d_name, cancel, &left) < 0) {
            add_left(&sum, &left);
            result = -1;
        }
    }
    *ret_left = sum;
    return result;
}

int workspace_exchange(int parent, const char *name, const char *other, struct err *err)
{
    if (!path_is_name(name) || !path_is_name(other)) {
        return err_set(err, ERR_BAD_PATH, 0, "not a name of a workspace");
    }
    if (renameat2(parent, name, parent, other, RENAME_EXCHANGE) == 0) {
        return 0;
    }
    if (errno == ENOENT) {
        return err_set(err, ERR_FILE_NOT_FOUND, errno, "the workspace is not there");
    }
    if (errno == EINVAL || errno == ENOSYS) {
        return err_set(err, ERR_NOT_SUPPORTED_HERE, errno,
                       "the file system of the state directory can't exchange directories");
    }
    return fail(err, errno, "the workspaces cannot be exchanged");
}

int workspace_each(int parent, void (*visit)(void *context, const char *name), void *context,
                   struct err *err)
{
    CLEANUP_DIR DIR *dir = fd_take_dir(fd_open_beneath(parent, ".", DIRECTORY_FLAGS, 0));
    const struct dirent *entry;

    if (dir == NULL) {
        return fail(err, errno, "the directory of workspaces cannot be read");
    }
    while ((entry = readdir(dir)) != NULL) {
        if (path_is_name(entry->d_name) && !is_reserved(entry->d_name)) {
            visit(context, entry->d_name);
        }
    }
    return 0;
}
