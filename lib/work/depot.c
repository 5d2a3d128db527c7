/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depot: content-addressed files in one directory.
 * Owns: the names in it: digests, and temporary ones where O_TMPFILE is missing.
 * Threads: any.
 * May include: base.
 */
#include "lib/work/depot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/hash.h"

static int fail(struct err *err, int sys, const char *what)
{
    enum err_code code = sys == ENOSPC || sys == EDQUOT ? ERR_STORE_FULL : ERR_IO;

    return err_set(err, code, sys, "%s: %s", what, err_errno_text(sys));
}

static bool is_digest(const char *name)
{
    return strlen(name) == HASH_HEX_SIZE - 1 &&
           strspn(name, "0123456789abcdef") == HASH_HEX_SIZE - 1;
}

int depot_open(const char *path, int *ret_depot, struct err *err)
{
    int fd;

    if (mkdir(path, S_IRWXU) < 0 && errno != EEXIST) {
        return fail(err, errno, "the directory of snapshots cannot be made");
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return fail(err, errno, "the directory of snapshots cannot be opened");
    }
    *ret_depot = fd;
    return 0;
}

int depot_begin(int depot, int *ret_fd, struct err *err)
{
    int fd = openat(depot, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);

    if (fd < 0) {
        return fail(err, errno, "a snapshot cannot be stored");
    }
    *ret_fd = fd;
    return 0;
}

int depot_keep(int depot, int fd, const char *digest, struct err *err)
{
    char source[64];

    if (!is_digest(digest)) {
        return err_set(err, ERR_INTERNAL, 0, "not a digest");
    }
    if (fsync(fd) < 0) {
        return fail(err, errno, "a snapshot cannot be stored");
    }
    (void)snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, source, depot, digest, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST) {
        return fail(err, errno, "a snapshot cannot be stored");
    }
    if (fsync(depot) < 0) {
        return fail(err, errno, "a snapshot cannot be stored");
    }
    return 0;
}

int depot_get(int depot, const char *digest, int *ret_fd, uint64_t *ret_size, struct err *err)
{
    CLEANUP_FD int fd = -1;
    struct stat status;

    if (!is_digest(digest)) {
        return err_set(err, ERR_INTERNAL, 0, "not a digest");
    }
    fd = openat(depot, digest, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return err_set(err, ERR_SNAPSHOT_NOT_FOUND, errno, "the snapshot's bytes are not there");
    }
    if (fd < 0 || fstat(fd, &status) < 0) {
        return fail(err, errno, "the snapshot cannot be opened");
    }
    *ret_fd = CLEANUP_TAKE_FD(fd);
    *ret_size = (uint64_t)status.st_size;
    return 0;
}

void depot_remove(int depot, const char *digest)
{
    if (is_digest(digest)) {
        (void)unlinkat(depot, digest, 0);
    }
}

int depot_each(int depot, void (*visit)(void *context, const char *digest), void *context,
               struct err *err)
{
    CLEANUP_DIR DIR *dir = fd_take_dir(openat(depot, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *entry;

    if (dir == NULL) {
        return fail(err, errno, "the directory of snapshots cannot be read");
    }
    while ((entry = readdir(dir)) != NULL) {
        if (is_digest(entry->d_name)) {
            visit(context, entry->d_name);
        }
    }
    return 0;
}
