/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd: file descriptors. All are close-on-exec from birth.
 */
#ifndef KERND_BASE_FD_H
#define KERND_BASE_FD_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Closes; -1 is a no-op; errno is kept. */
void fd_close(int fd);

/* Closes *fd and sets it to -1. */
void fd_clear(int *fd);

/* 0 or -1 with errno. */
int fd_set_nonblocking(int fd, bool on);

/* A pipe, both ends close-on-exec, blocking. 0 or -1 with errno. */
int fd_pipe(int *ret_read, int *ret_write);

/* Reads or writes exactly size bytes on a blocking fd, EINTR retried. 0, or -1 with errno (EPIPE at
 * an early end of file for reads). */
int fd_read_full(int fd, void *data, size_t size);
int fd_write_full(int fd, const void *data, size_t size);

/* Appends what is left of a file to out. 0, or -1: err IO, or BODY_TOO_LARGE past out's maximum. */
int fd_read_to_end(int fd, struct buf *out, struct err *err);

/*
 * openat2(2) (Linux 5.6) of a relative path below dir with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
 * RESOLVE_NO_MAGICLINKS and O_CLOEXEC added: no "..", no symlink in any component, no way outside,
 * no race. Retries EAGAIN (a rename raced) a few times. The fd, or -1 with errno (ELOOP: a symlink,
 * EXDEV: would leave dir).
 */
int fd_open_beneath(int dir, const char *path, int flags, mode_t mode);

/*
 * The directory that is open there, to be read name by name. Takes the descriptor, also when it
 * fails; -1 is as good as none, and errno as it was. NULL with errno.
 */
DIR *fd_take_dir(int fd);

/*
 * Reads a whole small file (at most max bytes, else EFBIG) into a fresh string that the caller
 * frees. ret_size may be NULL. NULL with errno.
 */
char *fd_read_file(const char *path, size_t max, size_t *ret_size);

/*
 * Writes a file in one go with exactly this mode, replacing an old one atomically (temporary in the
 * same directory, rename). Not synced: after a power cut the file may be empty. 0 or -1 with errno.
 */
int fd_write_file(const char *path, const void *data, size_t size, mode_t mode);

#endif
