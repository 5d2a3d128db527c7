/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry: what is known about one thing in a workspace. Plain values; any thread.
 */
#ifndef KERND_WORK_ENTRY_H
#define KERND_WORK_ENTRY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum entry_type {
    ENTRY_FILE,
    ENTRY_DIRECTORY,
    ENTRY_SYMLINK,
    ENTRY_FIFO,
    ENTRY_SOCKET,
    ENTRY_DEVICE,
    ENTRY_TYPE_MAX,
};

#define ENTRY_ETAG_SIZE 17

struct entry {
    enum entry_type type;
    uint64_t size; /* bytes; of a symlink: of its target text; of a directory: 0 */
    int64_t mtime_ns;
    unsigned mode;              /* permission bits, 07777 */
    bool unreadable;            /* the server's user may not read it as things are */
    char etag[ENTRY_ETAG_SIZE]; /* hex, without quotes; changes with every change of the file */
};

/* "file", "directory", "symlink", "fifo", "socket", "device". */
const char *entry_type_text(enum entry_type type);

enum entry_type entry_type_of(mode_t mode);

/*
 * A number that changes with every change of a file: made of inode number, size, mtime and ctime.
 * A program can't set ctime (inode(7)), so a rewrite that restores size and mtime is seen too.
 */
uint64_t entry_stamp(const struct stat *status);

/* Fills all but unreadable (false). The etag is the stamp. */
void entry_from_stat(const struct stat *status, struct entry *ret_entry);

#endif
