/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge: two walks over the new tree: one that looks, one that moves.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/work/merge.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/work/fail.h"
#include "lib/work/move.h"
#include "lib/work/path.h"
#include "lib/work/walk.h"

struct merging {
    int to;
    bool looking; /* only look */
    /* The last directory that something went to: members of one come in a row. */
    int parent;
    char *parent_path;
};

enum target { TARGET_FREE, TARGET_DIRECTORY, TARGET_OTHER };

/* "a/b: a directory is in the way". Always -1. */
static int in_the_way(struct err *err, const char *path, const char *what)
{
    return err_set(err, ERR_FILE_EXISTS, 0, "%.200s: %s is in the way", path, what);
}

/* Opens the directory that is to hold the path. 0 or -1. */
static int open_parent(struct merging *merging, const char *path, struct err *err)
{
    CLEANUP_FREE char *parent = path_parent(path);

    if (merging->parent >= 0 && text_equal(parent, merging->parent_path)) {
        return 0;
    }
    fd_clear(&merging->parent);
    free(merging->parent_path);
    merging->parent_path = CLEANUP_TAKE(parent);
    merging->parent = fd_open_beneath(merging->to, merging->parent_path, O_RDONLY | O_DIRECTORY, 0);
    return merging->parent < 0 ? fail_errno(err, errno, "a directory cannot be opened") : 0;
}

static int look(const struct merging *merging, const struct walk_entry *found,
                enum target *ret_target, struct err *err)
{
    struct stat status;

    if (fstatat(merging->parent, found->name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        *ret_target = TARGET_FREE;
        return errno == ENOENT ? 0 : fail_errno(err, errno, "a directory cannot be read");
    }
    *ret_target = S_ISDIR(status.st_mode) ? TARGET_DIRECTORY : TARGET_OTHER;
    return 0;
}

static int check(const struct walk_entry *found, enum target target, struct err *err)
{
    if (found->type != DT_DIR) {
        return target == TARGET_DIRECTORY ? in_the_way(err, found->path, "a directory") : 0;
    }
    if (target == TARGET_OTHER) {
        return in_the_way(err, found->path, "something that is not a directory");
    }
    if (target == TARGET_DIRECTORY && found->unreadable) {
        return err_set(err, ERR_FORBIDDEN, 0,
                       "%.200s: a directory without rights can't go over one that is there",
                       found->path);
    }
    return 0;
}

static int add(struct merging *merging, struct walk *walk, const struct walk_entry *found,
               struct err *err)
{
    enum target target;

    if (open_parent(merging, found->path, err) < 0 || look(merging, found, &target, err) < 0 ||
        check(found, target, err) < 0) {
        return -1;
    }
    if (found->type == DT_DIR && target == TARGET_DIRECTORY) {
        return 0;
    }
    if (found->type == DT_DIR) {
        walk_prune(walk); /* it goes with all that is in it */
    }
    if (!merging->looking && move_entry(found->directory, merging->parent, found->name) < 0) {
        return fail_errno(err, errno, "a file cannot be put in place");
    }
    return 0;
}

static int walk_all(struct merging *merging, int from, struct err *err)
{
    static const struct walk_options how = { .start = PATH_ROOT, .recursive = true };
    struct walk_entry found;
    struct walk *walk;
    int result = 0;

    if (walk_open(from, &how, &walk, err) < 0) {
        return -1;
    }
    while (result == 0 && walk_next(walk, &found)) {
        result = add(merging, walk, &found, err);
    }
    walk_close(walk);
    fd_clear(&merging->parent);
    free(CLEANUP_TAKE(merging->parent_path));
    return result;
}

int merge_tree(int from, int to, struct err *err)
{
    struct merging merging = { .to = to, .looking = true, .parent = -1 };

    if (walk_all(&merging, from, err) < 0) {
        return -1;
    }
    merging.looking = false;
    return walk_all(&merging, from, err);
}
