/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put: atomic writes by way of a nameless file (O_TMPFILE), so that even a killed server leaves no
 * half-written file behind; by a temporary name where the file system has no such thing.
 * Owns: the open file until it is committed.
 * Threads: one at a time.
 * May include: base.
 */
#include "lib/work/put.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/id.h"
#include "lib/base/text.h"
#include "lib/work/bytes.h"
#include "lib/work/fail.h"
#include "lib/work/files.h"
#include "lib/work/path.h"

#define TEMPORARY ".kernd-put"
#define TEMPORARY_SIZE (strlen(TEMPORARY "_") + 20) /* see id_make */

#define FILE_MODE 0644
#define PERMISSION_BITS 0777U

struct put {
    int root; /* borrowed */
    char *path;
    struct put_options options;
    char *if_match;
    uint64_t written;
    int adopted; /* a nameless file whose content is wanted, -1: none; borrowed */
    int fd;
    int directory;           /* where the file was opened (O_PATH) */
    char temporary[ID_SIZE]; /* its name there, "" for a nameless one */
};

static const char cannot_write[] = "the file cannot be written";

/* What is at the place now. 0 and whether anything is, or -1: not a place to write to. */
static int look(const struct put *put, int parent, bool *ret_there, struct stat *ret_status,
                struct err *err)
{
    const struct put_options *options = &put->options;
    struct entry entry;

    if (fstatat(parent, path_base(put->path), ret_status, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT) {
            return fail_errno(err, errno, cannot_write);
        }
        *ret_there = false;
        return put->if_match == NULL
                   ? 0
                   : err_set(err, ERR_ETAG_MISMATCH, 0, "there is no file with that etag");
    }
    if (options->create_only) {
        return err_set(err, ERR_ETAG_MISMATCH, 0, "something by that name is there already");
    }
    entry_from_stat(ret_status, &entry);
    if (entry.type != ENTRY_FILE) {
        return err_set(err, ERR_BAD_PATH, 0, "the path names a %s, not a regular file",
                       entry_type_text(entry.type));
    }
    if (put->if_match != NULL && !text_equal(put->if_match, entry.etag)) {
        return err_set(err, ERR_ETAG_MISMATCH, 0, "the file was changed: its etag is another one");
    }
    *ret_there = true;
    return 0;
}

/* The directory the file will be in if it exists, else the workspace: the same file system. */
static int choose_directory(struct put *put, struct err *err)
{
    struct err reason = ERR_INIT;
    struct stat status;
    bool there;

    if (files_open_parent(put->root, put->path, false, &put->directory, &reason) == 0) {
        return look(put, put->directory, &there, &status, err);
    }
    if (reason.code != ERR_FILE_NOT_FOUND || reason.sys != ENOENT) {
        if (err != NULL) {
            *err = reason;
        }
        return -1;
    }
    if (put->if_match != NULL) {
        return err_set(err, ERR_ETAG_MISMATCH, 0, "there is no file with that etag");
    }
    put->directory = fd_open_beneath(put->root, ".", O_PATH | O_DIRECTORY, 0);
    return put->directory >= 0 ? 0 : fail_errno(err, errno, cannot_write);
}

bool put_is_temporary(const char *name)
{
    return text_starts_with(name, TEMPORARY "_") && strlen(name) == TEMPORARY_SIZE &&
           strspn(name + strlen(TEMPORARY "_"), "0123456789abcdefghijklmnopqrstuvwxyz") ==
               TEMPORARY_SIZE - strlen(TEMPORARY "_");
}

static int open_file(struct put *put, struct err *err)
{
    put->fd = fd_open_beneath(put->directory, ".", O_TMPFILE | O_RDWR, S_IRUSR | S_IWUSR);
    /* Without support: EOPNOTSUPP, or EISDIR or ENOENT from old kernels (open(2), O_TMPFILE). */
    if (put->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
        (void)id_make(TEMPORARY, put->temporary);
        put->fd = fd_open_beneath(put->directory, put->temporary, O_CREAT | O_EXCL | O_RDWR,
                                  S_IRUSR | S_IWUSR);
        if (put->fd < 0) {
            put->temporary[0] = '\0';
        }
    }
    return put->fd >= 0 ? 0 : fail_errno(err, errno, cannot_write);
}

int put_begin(int root, const char *path, const struct put_options *options, struct put **ret_put,
              struct err *err)
{
    struct put *put = alloc_zero(1, sizeof(*put));

    put->root = root;
    put->path = alloc_text(path);
    put->adopted = -1;
    put->fd = -1;
    put->directory = -1;
    if (options != NULL) {
        put->options = *options;
        put->if_match = alloc_text(options->if_match);
    }
    if (choose_directory(put, err) < 0 || open_file(put, err) < 0) {
        put_free(put);
        return -1;
    }
    *ret_put = put;
    return 0;
}

static int check_room(const struct put *put, uint64_t size, struct err *err)
{
    if (put->options.max_bytes == 0 || size <= put->options.max_bytes - put->written) {
        return 0;
    }
    return err_set(err, ERR_WORKSPACE_FULL, EDQUOT, "%s: only %llu bytes may still be used",
                   cannot_write, (unsigned long long)put->options.max_bytes);
}

int put_write(struct put *put, const void *data, size_t size, struct err *err)
{
    if (check_room(put, size, err) < 0) {
        return -1;
    }
    if (fd_write_full(put->fd, data, size) < 0) {
        return fail_errno(err, errno, cannot_write);
    }
    put->written += size;
    return 0;
}

int put_adopt(struct put *put, int fd, uint64_t size, struct err *err)
{
    if (check_room(put, size, err) < 0) {
        return -1;
    }
    put->adopted = fd;
    return 0;
}

/* The file that is to get the name. */
static int content_of(const struct put *put)
{
    return put->adopted >= 0 ? put->adopted : put->fd;
}

/* From here on the put's own file has what the adopted one has. 0 or -1, errno. */
static int copy_adopted(struct put *put)
{
    struct stat status;

    if (put->adopted < 0) {
        return 0;
    }
    if (fstat(put->adopted, &status) < 0 || bytes_copy(put->adopted, put->fd) < 0 ||
        fchmod(put->fd, status.st_mode & PERMISSION_BITS) < 0 ||
        (put->options.durable && fsync(put->fd) < 0)) {
        return -1;
    }
    put->adopted = -1;
    return 0;
}

/* Gives a nameless file a name that is free: linkat(2) of the /proc entry, as open(2) shows. */
static int link_fd(int fd, int parent, const char *name)
{
    char source[64];

    (void)snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, source, parent, name, AT_SYMLINK_FOLLOW);
}

/* An adopted file of another file system, or reached through another mount, has to be copied. */
static int link_as(struct put *put, int parent, const char *name)
{
    if (link_fd(content_of(put), parent, name) == 0) {
        return 0;
    }
    if (put->adopted < 0 || errno == EEXIST || copy_adopted(put) < 0) {
        return -1;
    }
    return link_fd(put->fd, parent, name);
}

/* linkat can't replace, so an old file goes by a temporary name and rename. 0 or -1, errno. */
static int replace(struct put *put, int parent)
{
    const char *name = path_base(put->path);
    char temporary[ID_SIZE];
    int sys;

    if (put->temporary[0] != '\0') {
        if (renameat(put->directory, put->temporary, parent, name) < 0) {
            return -1;
        }
        put->temporary[0] = '\0';
        return 0;
    }
    (void)id_make(TEMPORARY, temporary);
    if (link_as(put, parent, temporary) < 0) {
        return -1;
    }
    if (renameat(parent, temporary, parent, name) == 0) {
        return 0;
    }
    sys = errno;
    (void)unlinkat(parent, temporary, 0);
    errno = sys;
    return -1;
}

/* A name that is not there yet, and must not be for create_only. 0 or -1, errno. */
static int publish(struct put *put, int parent)
{
    const char *name = path_base(put->path);

    if (put->temporary[0] != '\0') {
        if (renameat2(put->directory, put->temporary, parent, name,
                      put->options.create_only ? RENAME_NOREPLACE : 0) < 0) {
            return -1;
        }
        put->temporary[0] = '\0';
        return 0;
    }
    if (link_as(put, parent, name) == 0) {
        return 0;
    }
    return errno == EEXIST && !put->options.create_only ? replace(put, parent) : -1;
}

static int sync_directory(int parent)
{
    CLEANUP_FD int fd = fd_open_beneath(parent, ".", O_RDONLY | O_DIRECTORY, 0);

    return fd >= 0 ? fsync(fd) : -1;
}

static int prepare(const struct put *put, bool there, const struct stat *old, struct err *err)
{
    unsigned mode = there ? old->st_mode & PERMISSION_BITS : FILE_MODE;

    if (put->options.set_mode) {
        mode = put->options.mode & PERMISSION_BITS;
    }
    if (fchmod(content_of(put), mode) < 0 || (put->options.durable && fsync(content_of(put)) < 0)) {
        return fail_errno(err, errno, cannot_write);
    }
    return 0;
}

int put_commit(struct put *put, bool *ret_created, struct entry *ret_entry, struct err *err)
{
    CLEANUP_FD int parent = -1;
    struct stat status;
    bool there;

    if (files_open_parent(put->root, put->path, true, &parent, err) < 0 ||
        look(put, parent, &there, &status, err) < 0 || prepare(put, there, &status, err) < 0) {
        return -1;
    }
    if (put->temporary[0] != '\0' && copy_adopted(put) < 0) {
        return fail_errno(err, errno, cannot_write);
    }
    if ((there ? replace(put, parent) : publish(put, parent)) < 0) {
        if (errno == EEXIST) {
            return err_set(err, ERR_ETAG_MISMATCH, 0, "something by that name came in between");
        }
        return fail_errno(err, errno, cannot_write);
    }
    if ((put->options.durable && sync_directory(parent) < 0) ||
        fstat(content_of(put), &status) < 0) {
        return fail_errno(err, errno, cannot_write);
    }
    if (ret_created != NULL) {
        *ret_created = !there;
    }
    if (ret_entry != NULL) {
        entry_from_stat(&status, ret_entry);
    }
    return 0;
}

void put_free(struct put *put)
{
    if (put == NULL) {
        return;
    }
    if (put->temporary[0] != '\0') {
        (void)unlinkat(put->directory, put->temporary, 0);
    }
    fd_close(put->fd);
    fd_close(put->directory);
    free(put->path);
    free(put->if_match);
    free(put);
}

int put_whole(int root, const char *path, const void *data, size_t size, struct err *err)
{
    struct put *put = NULL;
    int result = put_begin(root, path, NULL, &put, err);

    if (result == 0) {
        result = put_write(put, data, size, err);
    }
    if (result == 0) {
        result = put_commit(put, NULL, NULL, err);
    }
    put_free(put);
    return result;
}
