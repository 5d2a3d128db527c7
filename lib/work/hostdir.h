/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostdir: which places of the host a caller may hand into a box, as workspace or as mount.
 *
 * Judged after all symbolic links are resolved. Refused: the system's own trees (/etc /root /boot
 * /proc /sys /dev /run), the home itself and its hidden entries (~/.ssh ...), the server's own
 * directories, every ancestor of those, and whatever is neither a directory nor a regular file
 * (Docker's socket, say). Any thread; touches nothing but what hostdir_workspace makes.
 */
#ifndef KERND_WORK_HOSTDIR_H
#define KERND_WORK_HOSTDIR_H

#include <sys/stat.h>

#include "lib/base/err.h"

/* Absolute, resolved paths (hostdir_resolve gives them). Borrowed. */
struct hostdir_rules {
    const char *home;         /* NULL: there is none */
    const char *const *own;   /* the server's directories; NULL-terminated, or NULL */
    const char *const *roots; /* NULL, or only what is at or below one of these is allowed */
};

/* realpath(3) of an existing path; NULL with errno. The caller frees. For rules, at start. */
char *hostdir_resolve(const char *path);

/*
 * A directory to be a session's workspace; made, with missing parents (mode 0700), once the place
 * is found allowed. 0, its resolved path (the caller frees) and a descriptor (the caller closes);
 * -1 BAD_VALUE (not absolute, has a '..', ':' or control byte, not a directory, not writable by the
 * server's user), MOUNT_REFUSED, IO.
 */
int hostdir_workspace(const char *path, const struct hostdir_rules *rules, char **ret_real,
                      int *ret_directory, struct err *err);

/* Opens a directory by its resolved path, without following a link anywhere. -1 with errno. */
int hostdir_open(const char *real);

/*
 * An existing file or directory to be mounted. 0, its resolved path (the caller frees) and what was
 * judged (ret_status may be NULL), or -1 BAD_VALUE (as above, or not there), MOUNT_REFUSED. Between
 * this and the mount a box that can write above it may put a link in its place: whoever mounts it
 * has to compare device and inode number.
 */
int hostdir_source(const char *path, const struct hostdir_rules *rules, char **ret_real,
                   struct stat *ret_status, struct err *err);

/*
 * Where in the box: 0 and the path without empty and "." components (the caller frees), or -1
 * BAD_VALUE, MOUNT_REFUSED for what would cover /workspace, the system or the server's own mounts.
 */
int hostdir_target(const char *path, char **ret_path, struct err *err);

#endif
