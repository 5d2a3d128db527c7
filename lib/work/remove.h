/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remove: deletes a directory tree that hostile code has filled.
 *
 * Works as an ordinary user against modes 000 and 0555 (it owns what a box makes), paths longer
 * than PATH_MAX, directories of any size, and names of any bytes. Never follows a symbolic link,
 * never enters a mount, never leaves the tree. At most 32 directories are open at once: what lies
 * deeper is first moved up to the top of the tree.
 */
#ifndef KERND_WORK_REMOVE_H
#define KERND_WORK_REMOVE_H

#include <stdint.h>

#include "lib/base/cancel.h"

#define REMOVE_PATH_SIZE 256

/* What could not be removed. */
struct remove_left {
    uint64_t count;               /* entries, without the directories that hold them */
    int sys;                      /* errno of the first one; ECANCELED when told to stop */
    char first[REMOVE_PATH_SIZE]; /* its path from `name` on, cut to fit; raw bytes */
};

/*
 * Removes `name` (one component, of any type) from the directory open as `parent`. 0 when it is
 * gone (also when it never was there), -1 when something is left, told in *ret_left. Blocks as long
 * as the deletion takes; cancel (may be NULL) stops it between two entries.
 */
int remove_tree(int parent, const char *name, struct cancel *cancel, struct remove_left *ret_left);

#endif
