/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: a cgroup v2 subtree of kernd's own, and one child of it per box (cgroups(7); the kernel's
 * Documentation/admin-guide/cgroup-v2.rst).
 *
 *     <own cgroup>/main         kernd itself: a cgroup with controllers for its children may hold
 *                               no process ("no internal processes")
 *     <own cgroup>/<box id>     one box: born there, capped there, killed there
 *
 * Usable where kernd may write to its own cgroup: a systemd unit or scope with Delegate=yes, a
 * container with a writable tree. A box's child is made before its launcher, so that everything of
 * the box is counted from its first instruction. Any thread.
 */
#ifndef KERND_BOX_CGROUP_H
#define KERND_BOX_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"

/* Of a box, where 100 is everybody's: what shares a disk with boxes goes before them. */
#define CGROUP_IO_WEIGHT 50U

/* The subtree. Constant after cgroup_open. */
struct cgroup_tree {
    int fd;      /* the own cgroup's directory, -1: not usable here */
    bool memory; /* which caps its children can have */
    bool pids;
    bool cpu;
    bool io;       /* disks are shared by weight (io.weight) */
    bool peaks;    /* memory.peak is there (Linux 5.19) */
    char why[160]; /* why not usable, "" if it is */
};

/*
 * Looks where kernd runs, moves it with all its threads into main/, where its own memory is spared
 * while others have some to give (memory.min; as far as the cgroups above grant it), hands
 * controllers to the children, removes what a killed predecessor left. Never fails: *ret_tree
 * tells.
 */
void cgroup_open(struct cgroup_tree *ret_tree);
void cgroup_close(struct cgroup_tree *tree);

struct cgroup_limits {
    uint64_t memory_bytes; /* 0: no cap */
    uint32_t pids;         /* 0: no cap */
    uint32_t own_tasks;    /* that the kernel counts with them, and the caller does not */
    double cpus;           /* 0: no cap */
};

/*
 * Makes the child of a box with its limits. 0 and an open directory (for CLONE_INTO_CGROUP), or -1
 * IO. Limits whose controller is missing are not set.
 */
int cgroup_make(const struct cgroup_tree *tree, const char *id, const struct cgroup_limits *limits,
                int *ret_fd, struct err *err);

/* Writes the limits anew (a spare that is taken). 0 or -1 IO. */
int cgroup_limit(const struct cgroup_tree *tree, int fd, const struct cgroup_limits *limits,
                 struct err *err);

/* What the kernel counted; negative: not known. */
struct cgroup_usage {
    int64_t cpu_user_us;
    int64_t cpu_system_us;
    int64_t memory_bytes; /* now */
    int64_t peak_memory_bytes;
    int64_t peak_pids; /* with own_tasks */
    int64_t oom_kills; /* processes killed for passing memory.max, with all below */
};
void cgroup_read(const struct cgroup_tree *tree, int fd, struct cgroup_usage *ret_usage);

/* oom_kills of cgroup_usage alone. */
int64_t cgroup_oom_kills(const struct cgroup_tree *tree, int fd);

/*
 * Moves a process into it, where it could not be born there: slow (all CPUs wait for it), and what
 * it started before stays outside. 0 or -1 with errno.
 */
int cgroup_enter(int fd, pid_t pid);

/* SIGKILL to every process of it at once (cgroup.kill, Linux 5.14). 0 or -1 with errno. */
int cgroup_kill(int fd);

/* Stops or continues all of it (cgroup.freeze). Does not wait. 0 or -1 with errno. */
int cgroup_freeze(int fd, bool frozen);

/* Is any process left in it (cgroup.events)? */
bool cgroup_populated(int fd);

/*
 * Kills what is left, waits until it is empty or the deadline, removes it. True: it is gone. The
 * descriptor is closed.
 */
bool cgroup_remove(const struct cgroup_tree *tree, const char *id, int fd, int64_t deadline);

#endif
