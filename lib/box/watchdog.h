/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog: keeps a box under its memory cap by looking, where no memory cgroup does it.
 *
 * Counted: resident memory of all processes, each shared page once, without pages of files, which
 * the kernel can drop, and what lies in the box's tmpfs mounts. A cheap upper bound (statm) is read
 * each time; the exact sum (smaps_rollup, Linux 5.4 for its parts) only when that passes the cap.
 * Between looks the box may overshoot: the pause is what is left under the cap divided by how fast
 * memory can be filled. Memory held by kernel objects (sockets, pipes, System V segments nobody has
 * attached) is not seen.
 */
#ifndef KERND_BOX_WATCHDOG_H
#define KERND_BOX_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WATCHDOG_TMPFS 3

struct watchdog {
    uint64_t cap; /* bytes, 0: off */
    pid_t init;   /* host pid of the box's PID 1 */
    int tmpfs[WATCHDOG_TMPFS];
    int64_t next_ns;     /* when to look again; CLOCK_NEVER when off */
    uint64_t peak_bytes; /* largest sum seen; an upper bound when never exact */
    size_t peak_pids;
    uint64_t over_bytes; /* the sum that passed the cap, 0: none */
    size_t over_pids;
};

/* Ready to look at the box whose PID 1 is init (host pid); cap 0: only next_ns is set. */
void watchdog_start(struct watchdog *watchdog, pid_t init, uint64_t cap);

/* Looks if it is time. True: the box is above its cap (over_... say by how much). */
bool watchdog_look(struct watchdog *watchdog, int64_t now_ns);

void watchdog_done(struct watchdog *watchdog);

#endif
