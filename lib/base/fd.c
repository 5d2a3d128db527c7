/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: open, read and write files and pipes the safe way.
 * Owns: nothing; descriptors are the caller's.
 * Threads: any.
 * May include: libc.
 */
#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/id.h"

#define READ_PIECE ((size_t)64 * 1024)
#define RACE_TRIES 16

void fd_close(int fd)
{
    int saved = errno;

    if (fd >= 0) {
        /* No retry on EINTR: Linux has freed the number already (close(2)). */
        (void)close(fd);
    }
    errno = saved;
}

void fd_clear(int *fd)
{
    fd_close(*fd);
    *fd = -1;
}

int fd_set_nonblocking(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0) {
        return -1;
    }
    flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return fcntl(fd, F_SETFL, flags) < 0 ? -1 : 0;
}

int fd_pipe(int *ret_read, int *ret_write)
{
    int ends[2] = { -1, -1 };

    if (pipe2(ends, O_CLOEXEC) < 0) {
        return -1;
    }
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}

/* read(2) that is not interrupted. */
static ssize_t read_some(int fd, void *data, size_t size)
{
    ssize_t got = 0;

    do {
        got = read(fd, data, size);
    } while (got < 0 && errno == EINTR);
    return got;
}

int fd_read_full(int fd, void *data, size_t size)
{
    char *at = data;

    while (size > 0) {
        ssize_t got = read_some(fd, at, size);

        if (got == 0) {
            errno = EPIPE;
        }
        if (got <= 0) {
            return -1;
        }
        at += got;
        size -= (size_t)got;
    }
    return 0;
}

int fd_write_full(int fd, const void *data, size_t size)
{
    const char *at = data;

    while (size > 0) {
        ssize_t put = write(fd, at, size);

        if (put < 0 && errno != EINTR) {
            return -1;
        }
        if (put > 0) {
            at += put;
            size -= (size_t)put;
        }
    }
    return 0;
}

/* Is anything left to read? 1 yes, 0 no, -1 errno. Eats a byte. */
static int more_to_read(int fd)
{
    char byte = 0;

    return (int)read_some(fd, &byte, 1);
}

int fd_read_to_end(int fd, struct buf *out, struct err *err)
{
    ssize_t got = 0;

    do {
        size_t left = out->max - out->size;
        size_t want = left < READ_PIECE ? left : READ_PIECE;

        if (want == 0) {
            got = more_to_read(fd);
            if (got > 0) {
                return err_set(err, ERR_BODY_TOO_LARGE, EFBIG, "more than %zu bytes", out->max);
            }
        } else {
            got = read_some(fd, buf_reserve(out, want), want);
            buf_commit(out, got > 0 ? (size_t)got : 0);
        }
    } while (got > 0);
    if (got < 0) {
        return err_set(err, ERR_IO, errno, "can't read: %s", err_errno_text(errno));
    }
    return 0;
}

static bool has_parent_component(const char *path)
{
    while (*path != '\0') {
        size_t length = strcspn(path, "/");

        if (length == 2 && path[0] == '.' && path[1] == '.') {
            return true;
        }
        path += length;
        path += strspn(path, "/");
    }
    return false;
}

int fd_open_beneath(int dir, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = -1;

    /* RESOLVE_BENEATH alone lets "a/.." pass, since it stays inside (openat2(2)). */
    if (has_parent_component(path)) {
        errno = EXDEV;
        return -1;
    }
    /* A mode without a file to create is EINVAL (openat2(2)). */
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {
        how.mode = mode;
    }
    for (int i = 0; i < RACE_TRIES; i++) {
        fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) {
            break;
        }
    }
    return (int)fd;
}

DIR *fd_take_dir(int fd)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir == NULL) {
        fd_close(fd);
    }
    return dir;
}

char *fd_read_file(const char *path, size_t max, size_t *ret_size)
{
    CLEANUP_BUF struct buf content = BUF_INIT(max);
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct err err = ERR_INIT;

    if (fd < 0) {
        return NULL;
    }
    if (fd_read_to_end(fd, &content, &err) < 0) {
        errno = err.sys;
        return NULL;
    }
    return buf_take(&content, ret_size);
}

int fd_write_file(const char *path, const void *data, size_t size, mode_t mode)
{
    CLEANUP_FREE char *temporary = NULL;
    CLEANUP_FD int fd = -1;
    char suffix[ID_SIZE];
    int saved = 0;

    temporary = alloc_printf("%s.%s", path, id_make("tmp", suffix));
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -1;
    }
    /* fchmod, since open's mode passes through the umask. */
    if (fchmod(fd, mode) == 0 && fd_write_full(fd, data, size) == 0 &&
        rename(temporary, path) == 0) {
        return 0;
    }
    saved = errno;
    (void)unlink(temporary);
    errno = saved;
    return -1;
}
