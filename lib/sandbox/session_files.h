/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_files: the files of a session that is held. Any thread but the event one; blocks as long
 * as the disk does.
 *
 * Paths are as clients write them, bytes of any value; see lib/work/path.h for what they mean. The
 * errors are those of lib/work/files.h, list.h and put.h.
 */
#ifndef KERND_SANDBOX_SESSION_FILES_H
#define KERND_SANDBOX_SESSION_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/sandbox/session.h"
#include "lib/work/entry.h" /* what is told of a file has their form */
#include "lib/work/list.h"

struct session_files_query {
    const char *directory; /* "": all */
    size_t directory_size;
    const char *glob;  /* NULL: any */
    const char *after; /* NULL, or list.next of the page before */
    bool recursive;
    size_t limit;
};

/* The caller calls list_done. */
int session_files_list(const struct session_hold *hold, const struct session_files_query *query,
                       struct list *ret_list, struct err *err);
void session_files_list_done(struct list *list);

/* A regular file, open for reading, for the caller to close. */
int session_files_open(const struct session_hold *hold, const char *path, size_t size, int *ret_fd,
                       struct entry *ret_entry, struct err *err);

/* 0, or -1 FILE_NOT_FOUND ... */
int session_files_stat(const struct session_hold *hold, const char *path, size_t size,
                       struct entry *ret_entry, struct err *err);

struct session_files_put {
    const char *path;
    size_t path_size;
    int file; /* nameless, see put_adopt; borrowed */
    uint64_t file_size;
    bool create_only;
    const char *if_match; /* an etag, NULL: no matter */
};

/*
 * Makes or replaces a file in one step, on disk when this returns. -1 WORKSPACE_FULL above the
 * session's diskMb, STORE_FULL, ETAG_MISMATCH ...
 */
int session_files_put(const struct session_hold *hold, const struct session_files_put *put,
                      bool *ret_created, struct entry *ret_entry, struct err *err);

struct session_files_path {
    const char *text;
    size_t size;
};

int session_files_delete(struct sandbox *sandbox, const struct session_hold *hold,
                         const struct session_files_path *path, bool recursive, struct err *err);

int session_files_move(const struct session_hold *hold, const char *from, const char *to,
                       bool overwrite, struct entry *ret_entry, struct err *err);

#endif
