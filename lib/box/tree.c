/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: copy and remove small directory trees.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/box/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"

#define DEPTH_MAX 8
#define REMOVE_DEPTH_MAX 64
#define FILE_MAX ((size_t)4 * 1024 * 1024)

static bool is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Opens a directory itself, never through a link. */
static DIR *open_dir(int dir, const char *name)
{
    return fd_take_dir(openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/* For directories of mode 0, as overlayfs makes them. fchmod(2) does not take such a descriptor. */
static int make_readable(int dir, const char *name)
{
    CLEANUP_FD int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return fd < 0 ? -1 : chmod(path, 0700);
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by depth */
static int remove_below(int dir, const char *name, int depth)
{
    CLEANUP_DIR DIR *opened = NULL;
    struct dirent *entry = NULL;

    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT) {
        return 0;
    }
    if ((errno != EISDIR && errno != EPERM) || depth == 0) {
        return -1;
    }
    /* Most are empty by then. */
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0) {
        return 0;
    }
    opened = open_dir(dir, name);
    if (opened == NULL && errno == EACCES && make_readable(dir, name) == 0) {
        opened = open_dir(dir, name);
    }
    while (opened != NULL && (entry = readdir(opened)) != NULL) {
        if (!is_dot(entry->d_name)) {
            (void)remove_below(dirfd(opened), entry->d_name, depth - 1);
        }
    }
    return unlinkat(dir, name, AT_REMOVEDIR);
}

int tree_remove(int dir, const char *name)
{
    return remove_below(dir, name, REMOVE_DEPTH_MAX);
}

static int copy_link(int from_dir, const char *from_name, int to_dir, const char *to_name)
{
    char target[PATH_MAX];
    ssize_t size = readlinkat(from_dir, from_name, target, sizeof(target) - 1);

    if (size < 0) {
        return 0;
    }
    target[size] = '\0';
    return symlinkat(target, to_dir, to_name);
}

static int copy_file(int from_dir, const char *from_name, int to_dir, const char *to_name)
{
    CLEANUP_BUF struct buf content = BUF_INIT(FILE_MAX);
    CLEANUP_FD int from = openat(from_dir, from_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP_FD int to = -1;

    if (from < 0 || fd_read_to_end(from, &content, NULL) < 0) {
        return 0;
    }
    to = openat(to_dir, to_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0 || (content.size > 0 && fd_write_full(to, content.data, content.size) < 0)) {
        return -1;
    }
    return fchmod(to, 0444);
}

static int copy_any(int from_dir, const char *from_name, int to_dir, const char *to_name,
                    int depth);

/* NOLINTNEXTLINE(misc-no-recursion): bounded by depth */
static int copy_dir(DIR *from, int to_dir, const char *to_name, int depth)
{
    CLEANUP_FD int to = -1;
    struct dirent *entry = NULL;

    if (mkdirat(to_dir, to_name, 0700) < 0) {
        return -1;
    }
    to = openat(to_dir, to_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to < 0 || fchmod(to, 0755) < 0) {
        return -1;
    }
    while (depth > 0 && (entry = readdir(from)) != NULL) {
        if (!is_dot(entry->d_name) &&
            copy_any(dirfd(from), entry->d_name, to, entry->d_name, depth - 1) < 0) {
            return -1;
        }
    }
    return 0;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by depth */
static int copy_any(int from_dir, const char *from_name, int to_dir, const char *to_name, int depth)
{
    CLEANUP_DIR DIR *from = NULL;
    struct stat status;

    if (fstatat(from_dir, from_name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        return 0;
    }
    if (S_ISLNK(status.st_mode)) {
        return copy_link(from_dir, from_name, to_dir, to_name);
    }
    /* Private files stay private, even when this process may read them. */
    if ((status.st_mode & S_IROTH) == 0) {
        return 0;
    }
    if (S_ISREG(status.st_mode)) {
        return copy_file(from_dir, from_name, to_dir, to_name);
    }
    from = S_ISDIR(status.st_mode) ? open_dir(from_dir, from_name) : NULL;
    return from == NULL ? 0 : copy_dir(from, to_dir, to_name, depth);
}

int tree_copy(int from_dir, const char *from_name, int to_dir, const char *to_name)
{
    return copy_any(from_dir, from_name, to_dir, to_name, DEPTH_MAX);
}

/* FNV-1a. */
uint64_t tree_stamp_bytes(uint64_t stamp, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++) {
        stamp = (stamp ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return stamp;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by depth */
static uint64_t stamp_any(uint64_t stamp, int dir, const char *name, int depth)
{
    CLEANUP_DIR DIR *opened = NULL;
    struct dirent *entry = NULL;
    struct stat status;

    stamp = tree_stamp_bytes(stamp, name, strlen(name) + 1);
    if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        return stamp;
    }
    stamp = tree_stamp_bytes(stamp, &status.st_mtim, sizeof(status.st_mtim));
    stamp = tree_stamp_bytes(stamp, &status.st_ctim, sizeof(status.st_ctim));
    stamp = tree_stamp_bytes(stamp, &status.st_size, sizeof(status.st_size));
    opened = S_ISDIR(status.st_mode) && depth > 0 ? open_dir(dir, name) : NULL;
    while (opened != NULL && (entry = readdir(opened)) != NULL) {
        if (!is_dot(entry->d_name)) {
            stamp = stamp_any(stamp, dirfd(opened), entry->d_name, depth - 1);
        }
    }
    return stamp;
}

uint64_t tree_stamp(uint64_t stamp, int dir, const char *name)
{
    return stamp_any(stamp ^ UINT64_C(0xcbf29ce484222325), dir, name, DEPTH_MAX);
}
