/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog: keeps a box under its memory cap by looking, where no memory cgroup does it.
 *
 * Counted: resident memory of all processes, each shared page once, without pages of files, which
 * the kernel can drop; what lies in the box's tmpfs mounts and in open memory files. A cheap upper
 * bound (statm) is read each time, the exact sum (smaps) only when that passes the cap. Between
 * looks the box may overshoot: the pause is what is left under the cap divided by how fast memory
 * can be filled. Not seen: memory of kernel objects, such as what lies in sockets and pipes.
 */
#ifndef KERND_BOX_WATCHDOG_H
#define KERND_BOX_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/box/memfiles.h"
#include "lib/box/proctree.h"

#define WATCHDOG_TMPFS 3

struct watchdog {
    uint64_t cap;    /* bytes, 0: off */
    int64_t next_ns; /* when to look again; CLOCK_NEVER when off */
    int64_t due_ns;  /* when it would have been, had it not been put off */
    pid_t init;      /* host pid of the box's PID 1 */
    int tmpfs[WATCHDOG_TMPFS];
    struct proctree tree;
    struct memfiles files;
    size_t looks;
    uint64_t peak_bytes; /* largest upper bound seen */
    size_t peak_tasks;   /* 0: never looked */
    uint64_t over_bytes; /* the exact sum that passed the cap, 0: none */
    size_t over_processes;
};

/* Can memory be watched here at all? */
bool watchdog_supported(void);

/* An idle one: next_ns is CLOCK_NEVER, nothing to free. */
void watchdog_init(struct watchdog *watchdog);

/* Watches the box whose PID 1 is init (a host pid); cap 0 leaves it idle. */
void watchdog_start(struct watchdog *watchdog, pid_t init, uint64_t cap);

/* Looks if it is time. True: the box is above its cap (over_... say by how much). */
bool watchdog_look(struct watchdog *watchdog);

/*
 * Puts a look that is due off by some milliseconds: work that is short is not delayed by it.
 * watchdog_catch_up makes it due again, and must follow.
 */
void watchdog_put_off(struct watchdog *watchdog);
void watchdog_catch_up(struct watchdog *watchdog);

void watchdog_done(struct watchdog *watchdog);

#endif
