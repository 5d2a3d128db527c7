/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list: a page of rows out of a walk.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/work/list.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/work/glob.h"
#include "lib/work/path.h"
#include "lib/work/put.h"
#include "lib/work/walk.h"

#define LOOKED_AT_MAX 100000

/* Is it wanted by the pattern, which is relative to the listed directory? */
static bool wanted(const struct list_options *options, const char *path)
{
    if (options->glob == NULL) {
        return true;
    }
    if (!text_equal(options->directory, PATH_ROOT)) {
        path += strlen(options->directory) + 1;
    }
    return glob_match(options->glob, path);
}

/* Fills a row; false if the entry is gone by now. */
static bool fill(const struct walk_entry *found, struct list_row *ret_row)
{
    struct stat status;
    int needed = R_OK;

    if (fstatat(found->directory, found->name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        return false;
    }
    entry_from_stat(&status, &ret_row->entry);
    ret_row->entry.unreadable = found->unreadable;
    if (ret_row->entry.type == ENTRY_DIRECTORY) {
        needed = R_OK | X_OK;
    }
    if (ret_row->entry.type == ENTRY_FILE || ret_row->entry.type == ENTRY_DIRECTORY) {
        ret_row->entry.unreadable =
            found->unreadable ||
            faccessat(found->directory, found->name, needed, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0;
    }
    ret_row->path = alloc_text(found->path);
    return true;
}

static void add_row(struct list *list, size_t *capacity, const struct list_row *row)
{
    if (list->count == *capacity) {
        *capacity = *capacity > 0 ? *capacity * 2 : 64;
        list->rows = alloc_resize(list->rows, *capacity, sizeof(*list->rows));
    }
    list->rows[list->count++] = *row;
}

/* Rows until the page is full, with one entry more looked at to know whether that was the end. */
static void collect(struct walk *walk, const struct list_options *options, struct list *list)
{
    struct walk_entry found;
    size_t capacity = 0;
    char *last = NULL;

    for (size_t looked_at = 0; walk_next(walk, &found); looked_at++) {
        struct list_row row;

        if (list->count == options->limit || looked_at == LOOKED_AT_MAX) {
            list->next = last;
            return;
        }
        free(last);
        last = alloc_text(found.path);
        if (!put_is_temporary(found.name) && wanted(options, found.path) && fill(&found, &row)) {
            add_row(list, &capacity, &row);
        }
    }
    free(last);
}

int list_take(int root, const struct list_options *options, struct list *ret_list, struct err *err)
{
    struct walk_options how = { .start = options->directory,
                                .recursive = options->recursive,
                                .after = options->after,
                                .skip = options->skip };
    struct list list = { .count = 0 };
    struct walk *walk = NULL;

    if (walk_open(root, &how, &walk, err) < 0) {
        return -1;
    }
    collect(walk, options, &list);
    list.incomplete = walk_incomplete(walk);
    walk_close(walk);
    *ret_list = list;
    return 0;
}

void list_done(struct list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->rows[i].path);
    }
    free(list->rows);
    free(list->next);
    *list = (struct list){ .count = 0 };
}
