/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files: single things in a workspace, always beneath its directory descriptor.
 *
 * `root` is a workspace open as a directory, `path` is parsed by lib/work/path.h. No symbolic link
 * is followed in any component, whatever a box does meanwhile (openat2, see fd_open_beneath), and
 * nothing here waits for a FIFO, a socket or a device. Any thread. Common errors: BAD_PATH (a link
 * or something that is not a directory on the way, or of the wrong type), FILE_NOT_FOUND, FORBIDDEN
 * (modes), WORKSPACE_FULL, IO. put.h writes, list.h lists.
 */
#ifndef KERND_WORK_FILES_H
#define KERND_WORK_FILES_H

#include <stdbool.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/work/entry.h"

/* About the thing itself, a symlink included; PATH_ROOT is the workspace. 0 or -1. */
int files_stat(int root, const char *path, struct entry *ret_entry, struct err *err);

/*
 * Opens a regular file for reading. 0, a descriptor for the caller to close, and what was opened
 * (ret_entry may be NULL); -1 BAD_PATH for anything but a regular file.
 */
int files_open(int root, const char *path, int *ret_fd, struct entry *ret_entry, struct err *err);

/* Appends a whole regular file to out. 0, or -1 as files_open, or BODY_TOO_LARGE above out's max.
 */
int files_read(int root, const char *path, struct buf *out, struct entry *ret_entry,
               struct err *err);

/*
 * Opens the directory that holds `path` (O_PATH: good for *at calls only), and with `make` makes
 * missing ones on the way, mode 0755. 0 and a descriptor for the caller to close, or -1.
 */
int files_open_parent(int root, const char *path, bool make, int *ret_fd, struct err *err);

/*
 * Deletes a file, link, FIFO, socket or empty directory; with `recursive` a whole tree. 0, or -1
 * FILE_EXISTS for a directory that is not empty, IO when a part of the tree could not be removed.
 */
int files_delete(int root, const char *path, bool recursive, struct err *err);

/*
 * Renames; the parents of `to` are made. Without overwrite, -1 FILE_EXISTS if `to` is there. With
 * it, a file replaces a file and a directory replaces an empty directory, in one step.
 */
int files_move(int root, const char *from, const char *to, bool overwrite, struct err *err);

/* Makes a directory and its parents, mode 0755. 0 also when it is there (*ret_created false). */
int files_make_directory(int root, const char *path, bool *ret_created, struct err *err);

#endif
