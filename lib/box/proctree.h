/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proctree: the processes below one process, by /proc. The PID 1 of a box adopts all orphans of its
 * namespace, so everything in the box is below it. A snapshot without a lock: what forks or ends
 * meanwhile may be missed.
 */
#ifndef KERND_BOX_PROCTREE_H
#define KERND_BOX_PROCTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCTREE_MAX 4096

struct proctree {
    pid_t *pids; /* room for PROCTREE_MAX */
    size_t count;
    size_t tasks; /* threads of all of them */
};

/* Can it be done here (the kernel has /proc/PID/task/TID/children: CONFIG_PROC_CHILDREN)? */
bool proctree_supported(void);

/* Fills tree with the descendants of root (a host pid), without root itself. */
void proctree_list(pid_t root, struct proctree *tree);

/* Their resident bytes; what several share counts for each. Processes that are gone have none. */
uint64_t proctree_resident(const struct proctree *tree);

#endif
