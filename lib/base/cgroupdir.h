/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroupdir: the directory of the cgroup v2 that this process is in, and whether it may be arranged
 * as this process likes (cgroups(7)). Any thread.
 */
#ifndef KERND_BASE_CGROUPDIR_H
#define KERND_BASE_CGROUPDIR_H

#include <stdbool.h>

struct cgroupdir {
    char *path; /* NULL: there is no cgroup v2 hierarchy, or it can't be seen */
    bool top;   /* the whole hierarchy, as far as it can be seen from here: a container's own */
};

/* The caller calls cgroupdir_done. */
void cgroupdir_find(struct cgroupdir *ret_dir);
void cgroupdir_done(struct cgroupdir *dir);

/* May this process make children in it and move processes? */
bool cgroupdir_writable(const char *path);

/*
 * Did the manager that made it say that it is ours to arrange (systemd's Delegate=yes, told by
 * extended attributes since version 249)?
 */
bool cgroupdir_delegated(const char *path);

/* Is this process, with all its threads, the only one in it? */
bool cgroupdir_alone(const char *path);

#endif
