/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy: one workspace into another.
 * Owns: nothing that lasts.
 * Threads: any.
 * May include: lib/base.
 */
#include "lib/work/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/work/fail.h"
#include "lib/work/files.h"
#include "lib/work/path.h"
#include "lib/work/walk.h"

#define COPY_PIECE ((size_t)1 << 30)
#define MODE_KEPT 0777

/* Between file systems, where copy_file_range refuses (EXDEV, since Linux 5.19). */
static int send_bytes(int from, int to)
{
    ssize_t sent;

    do {
        sent = sendfile(to, from, NULL, COPY_PIECE);
    } while (sent > 0 || (sent < 0 && errno == EINTR));
    return sent < 0 ? -1 : 0;
}

int copy_bytes(int from, int to)
{
    ssize_t copied;

    if (ioctl(to, FICLONE, from) == 0) {
        return 0;
    }
    do {
        copied = copy_file_range(from, NULL, to, NULL, COPY_PIECE, 0);
    } while (copied > 0 || (copied < 0 && errno == EINTR));
    if (copied < 0 && errno != ENOSPC && errno != EDQUOT && errno != EFBIG && errno != EIO) {
        return send_bytes(from, to);
    }
    return copied < 0 ? -1 : 0;
}

static int copy_file(const struct walk_entry *entry, int to_parent, const struct stat *status)
{
    const struct timespec times[2] = { status->st_atim, status->st_mtim };
    CLEANUP_FD int from =
        openat(entry->directory, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    CLEANUP_FD int to = -1;
    struct stat opened;

    if (from < 0 || fstat(from, &opened) < 0) {
        return errno == EACCES || errno == ENOENT ? 0 : -1; /* its owner hid or removed it */
    }
    if (!S_ISREG(opened.st_mode)) {
        return 0;
    }
    to = openat(to_parent, path_base(entry->path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0 || copy_bytes(from, to) < 0 || fchmod(to, status->st_mode & MODE_KEPT) < 0) {
        return -1;
    }
    return futimens(to, times);
}

static int copy_link(const struct walk_entry *entry, int to_parent)
{
    char target[PATH_MAX];
    ssize_t size = readlinkat(entry->directory, entry->name, target, sizeof(target) - 1);

    if (size < 0) {
        return errno == ENOENT ? 0 : -1;
    }
    target[size] = '\0';
    return symlinkat(target, to_parent, path_base(entry->path));
}

static int copy_entry(const struct walk_entry *entry, int to, struct err *err)
{
    CLEANUP_FD int to_parent = -1;
    struct stat status;
    int result = 0;

    if (fstatat(entry->directory, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        return 0; /* removed meanwhile */
    }
    if (files_open_parent(to, entry->path, false, &to_parent, err) < 0) {
        return -1;
    }
    if (S_ISDIR(status.st_mode)) {
        /* Always enterable by its owner, so that the copy can be filled. */
        result = mkdirat(to_parent, path_base(entry->path), (status.st_mode & MODE_KEPT) | 0700);
    } else if (S_ISREG(status.st_mode)) {
        result = copy_file(entry, to_parent, &status);
    } else if (S_ISLNK(status.st_mode)) {
        result = copy_link(entry, to_parent);
    }
    return result < 0 ? fail_errno(err, errno, "a file of the workspace cannot be copied") : 0;
}

int copy_tree(int from, int to, struct err *err)
{
    static const char *const nothing[] = { NULL };
    const struct walk_options options = { .start = PATH_ROOT, .recursive = true, .skip = nothing };
    struct walk *walk;
    struct walk_entry entry;
    int result = 0;

    if (walk_open(from, &options, &walk, err) < 0) {
        return -1;
    }
    while (result == 0 && walk_next(walk, &entry)) {
        result = copy_entry(&entry, to, err);
    }
    walk_close(walk);
    return result;
}
