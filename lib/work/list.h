/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list: one page of what is in a workspace. Any thread.
 *
 * Pages are stable: the order is that of path_compare, and the next page starts behind the last
 * path of this one, whatever was made or deleted meanwhile.
 */
#ifndef KERND_WORK_LIST_H
#define KERND_WORK_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/work/entry.h"

struct list_options {
    const char *directory; /* parsed; PATH_ROOT is all */
    const char *glob;      /* NULL, or only what matches (glob.h), relative to directory */
    bool recursive;
    const char *after;       /* NULL, or `next` of the page before */
    size_t limit;            /* rows, > 0 */
    const char *const *skip; /* whole paths to leave out; NULL-terminated, or NULL */
};

struct list_row {
    char *path; /* raw bytes, from the workspace on */
    struct entry entry;
};

struct list {
    struct list_row *rows;
    size_t count;
    char *next;      /* where the next page starts (opaque to clients), NULL: this was the last */
    bool incomplete; /* something can never be told: see walk_incomplete */
};

/*
 * 0, or -1 FILE_NOT_FOUND, BAD_PATH (not a directory), FORBIDDEN, IO. Entries that can't be read
 * are rows marked unreadable. A page looks at no more than 100,000 entries: with a glob it may then
 * hold fewer rows than the limit, even none, and still have a next.
 */
int list_take(int root, const struct list_options *options, struct list *ret_list, struct err *err);

/* Frees what is in it. */
void list_done(struct list *list);

#endif
