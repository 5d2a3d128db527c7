/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts: the rules of hostdir over a list.
 * Owns: nothing.
 * Threads: any.
 * May include: lib/base, lib/work, lib/sandbox.
 */
#include "lib/sandbox/mounts.h"

#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/sandbox/point.h"
#include "lib/work/hostdir.h"
#include "lib/work/path.h"

static int resolve(const struct hostdir_rules *rules, struct run_mount *mount, struct err *err)
{
    CLEANUP_FREE char *source = NULL;
    CLEANUP_FREE char *target = NULL;
    struct stat status;

    if (hostdir_source(mount->source, rules, &source, &status, err) < 0 ||
        hostdir_target(mount->target, &target, err) < 0) {
        point_at(err, "/mounts/", mount->source);
        return -1;
    }
    free(mount->source);
    free(mount->target);
    mount->source = CLEANUP_TAKE(source);
    mount->target = CLEANUP_TAKE(target);
    mount->device = status.st_dev;
    mount->inode = status.st_ino;
    return 0;
}

/*
 * Inside another mount a box may have left a symbolic link where the launcher is to make the
 * directory of this one.
 */
static int check_nesting(const struct run_mount *mounts, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            if (i != j && path_is_beneath(mounts[i].target, mounts[j].target)) {
                (void)err_set(err, ERR_BAD_VALUE, 0,
                              "the target of a mount is that of another, or lies inside it");
                point_at(err, "/mounts/", mounts[i].source);
                return -1;
            }
        }
    }
    return 0;
}

int mounts_resolve(const struct hostdir_rules *rules, struct run_mount *mounts, size_t count,
                   struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (resolve(rules, &mounts[i], err) < 0) {
            return -1;
        }
    }
    return check_nesting(mounts, count, err);
}
