/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn: starts a launcher as a clean child process, watched by a pidfd.
 *
 * Linux 5.9 is the floor: clone3 (5.3) with CLONE_PIDFD and CLONE_CLEAR_SIGHAND (5.5), close_range
 * (5.9); CLONE_INTO_CGROUP needs 5.7. The child has default signal dispositions, an empty signal
 * mask, a process group of its own, a high oom_score_adj, exactly the descriptors it was given, may
 * open half as many as we (spawn.c), and it dies with the thread that made it (PR_SET_PDEATHSIG,
 * prctl(2)) unless the program sees to that itself.
 */
#ifndef KERND_BOX_SPAWN_H
#define KERND_BOX_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"

#define SPAWN_FDS_MAX ((size_t)16)

/* Of every child and all that it starts (proc(5), oom_score_adj): a host out of memory shall take a
 * box before kernd or anything else of this user. */
#define SPAWN_OOM_SCORE "800"

struct spawn_request {
    const char *path; /* absolute */
    char *const *argv;
    char *const *environment;
    const int *fds; /* become 0, 1, 2, ... in the child */
    size_t fd_count;
    int cgroup_fd; /* directory of the cgroup to be born in, -1: the caller's */
    /*
     * No death signal from here: one that strikes bwrap between its clone and its uid map leaves a
     * child of it waiting for that map for ever, in no box and with no parent. bwrap asks for the
     * signal itself (--die-with-parent), after the map.
     */
    bool ends_with_parent;
};

struct spawn_child {
    pid_t pid; /* also its process group, until reaped */
    int pidfd;
    int exec_error; /* read end: an errno if exec failed, end of file once it succeeded */
};

/*
 * Returns once the program is executed or that has failed (clone.h). 0, or -1 IO. The child is the
 * caller's to kill and to reap.
 */
int spawn_start(const struct spawn_request *request, struct spawn_child *ret_child,
                struct err *err);

/*
 * Waits for the children that other threads are starting, some milliseconds at most. Until exec a
 * child holds a copy of every descriptor of ours, so a file that was written and closed meanwhile
 * still counts as being written and can't be executed (ETXTBSY, execve(2)). To be called after
 * writing files that a box may execute.
 */
void spawn_settle(void);

/* 0 when exec succeeded, else its errno. Never blocks. */
int spawn_exec_errno(const struct spawn_child *child);

/* SIGKILL to the child and its process group. Safe until it is reaped, and after. */
void spawn_kill(const struct spawn_child *child);

/* Collects a dead child. True: gone, its wait status in *ret_status (may be NULL). Never blocks. */
bool spawn_reap(struct spawn_child *child, int *ret_status);

/* As spawn_reap, but waits for the death until the deadline. */
bool spawn_await(struct spawn_child *child, int64_t deadline);

/* Closes the descriptors; does not kill. */
void spawn_done(struct spawn_child *child);

#endif
