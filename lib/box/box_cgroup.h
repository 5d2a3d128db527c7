/* SPDX-License-Identifier: Apache-2.0 */
/*
 * box_cgroup: one box's cgroup, where this host lets kernd have some; for the files of this room
 * only. Without one every function does nothing. The box's thread, except box_cgroup_read.
 */
#ifndef KERND_BOX_BOX_CGROUP_H
#define KERND_BOX_BOX_CGROUP_H

#include <stdbool.h>

#include "lib/box/box_internal.h"
#include "lib/box/cgroup.h"

/* Makes it, with the box's limits. A box that gets none falls back to watchdog and rlimits. */
void box_cgroup_make(struct box *box);

/* Starts the launcher in it. As spawn_start. */
int box_cgroup_spawn(struct box *box, struct spawn_request *request, struct err *err);

/* Writes box->limits anew. 0 or -1 IO. */
int box_cgroup_limit(struct box *box, struct err *err);

/* Processor time counts from now. */
void box_cgroup_begin(struct box *box);

/* Does the kernel keep this box under its memory cap, count its processes, ration its CPUs? */
bool box_cgroup_has_memory(const struct box *box);
bool box_cgroup_has_pids(const struct box *box);
bool box_cgroup_has_cpu(const struct box *box);

/* What it used since box_cgroup_begin; all -1 without one. */
void box_cgroup_read(const struct box *box, struct cgroup_usage *ret_usage);

/* Did the kernel kill for memory in it? */
bool box_cgroup_oom(const struct box *box);

/* True if it was done here. */
bool box_cgroup_freeze(struct box *box, bool frozen);

/* SIGKILL to all of it, the launcher too. */
void box_cgroup_kill(const struct box *box);

/* Removes it. True: it is gone. */
bool box_cgroup_remove(struct box *box);

#endif
