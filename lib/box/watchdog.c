/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: memory watchdog.
 * Owns: descriptors of the box's tmpfs mounts, its list of processes.
 * Threads: the box's.
 * May include: base, proctree, smaps.
 */
#include "lib/box/watchdog.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/box/memfiles.h"
#include "lib/box/smaps.h"

/* Touching fresh pages goes at 2 to 4 bytes a nanosecond and core. */
#define FILL_BYTES_PER_NS 4
#define PAUSE_MIN_NS (5 * CLOCK_NS_PER_MS)
#define PAUSE_MAX_NS (100 * CLOCK_NS_PER_MS)
/* Looking may take this part of the time at most: 1 in ... */
#define COST_PART 20
/* But however many processes and descriptors there are to look at, not longer than this. */
#define PAUSE_COSTLY_NS (250 * CLOCK_NS_PER_MS)
/* What an empty file of a tmpfs costs the kernel, about. */
#define INODE_BYTES 1024

static const char *const tmpfs_paths[WATCHDOG_TMPFS] = { "tmp", "dev/shm", "home/sandbox" };

bool watchdog_supported(void)
{
    return proctree_supported();
}

void watchdog_init(struct watchdog *watchdog)
{
    *watchdog =
        (struct watchdog){ .next_ns = CLOCK_NEVER, .due_ns = CLOCK_NEVER, .tmpfs = { -1, -1, -1 } };
}

/* Reachable since the creator of a user namespace may look at its processes (user_namespaces(7)).
 */
static void open_tmpfs(struct watchdog *watchdog)
{
    for (size_t i = 0; i < WATCHDOG_TMPFS; i++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/%d/root/%s", watchdog->init, tmpfs_paths[i]);
        watchdog->tmpfs[i] = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
}

void watchdog_start(struct watchdog *watchdog, pid_t init, uint64_t cap)
{
    if (cap == 0 || !watchdog_supported()) {
        return;
    }
    watchdog->cap = cap;
    watchdog->init = init;
    watchdog->next_ns = clock_mono_ns() + PAUSE_MIN_NS;
    watchdog->due_ns = watchdog->next_ns;
}

/* At the first look: most programs have ended before. */
static void prepare(struct watchdog *watchdog)
{
    watchdog->files.device = memfiles_device();
    watchdog->tree.pids = alloc_zero(PROCTREE_MAX, sizeof(pid_t));
    open_tmpfs(watchdog);
}

static uint64_t tmpfs_bytes(const struct watchdog *watchdog)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < WATCHDOG_TMPFS; i++) {
        struct statfs status;

        if (watchdog->tmpfs[i] >= 0 && fstatfs(watchdog->tmpfs[i], &status) == 0) {
            sum += (uint64_t)(status.f_blocks - status.f_bfree) * (uint64_t)status.f_bsize;
            sum += (uint64_t)(status.f_files - status.f_ffree) * INODE_BYTES;
        }
    }
    return sum;
}

static uint64_t sum_exact(const struct watchdog *watchdog)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < watchdog->tree.count; i++) {
        sum += smaps_of_process(watchdog->tree.pids[i], &watchdog->files);
    }
    return sum;
}

static void plan_next(struct watchdog *watchdog, int64_t began_ns, uint64_t used)
{
    int64_t now = clock_mono_ns();
    int64_t cost = (now - began_ns) * COST_PART;
    uint64_t left = used < watchdog->cap ? watchdog->cap - used : 0;
    int64_t pause = PAUSE_MAX_NS;

    if (left / FILL_BYTES_PER_NS < (uint64_t)PAUSE_MAX_NS) {
        pause = (int64_t)(left / FILL_BYTES_PER_NS);
    }
    pause = pause < PAUSE_MIN_NS ? PAUSE_MIN_NS : pause;
    cost = cost < PAUSE_COSTLY_NS ? cost : PAUSE_COSTLY_NS;
    watchdog->next_ns = now + (cost > pause ? cost : pause);
    watchdog->due_ns = watchdog->next_ns;
}

bool watchdog_look(struct watchdog *watchdog)
{
    int64_t began = clock_mono_ns();
    uint64_t in_files = 0;
    uint64_t used = 0;

    if (began < watchdog->next_ns) {
        return false;
    }
    if (watchdog->tree.pids == NULL) {
        prepare(watchdog);
    }
    proctree_list(watchdog->init, &watchdog->tree);
    memfiles_scan(&watchdog->files, &watchdog->tree, watchdog->looks++);
    in_files = watchdog->files.bytes + tmpfs_bytes(watchdog);
    used = in_files + proctree_resident(&watchdog->tree);
    if (used > watchdog->cap) {
        used = in_files + sum_exact(watchdog);
    }
    if (watchdog->tree.tasks > watchdog->peak_tasks) {
        watchdog->peak_tasks = watchdog->tree.tasks;
    }
    watchdog->peak_bytes = used > watchdog->peak_bytes ? used : watchdog->peak_bytes;
    if (used > watchdog->cap) {
        watchdog->over_bytes = used;
        watchdog->over_processes = watchdog->tree.count;
        return true;
    }
    plan_next(watchdog, began, used);
    return false;
}

void watchdog_put_off(struct watchdog *watchdog)
{
    int64_t soon = clock_mono_ns() + PAUSE_MIN_NS;

    watchdog->next_ns = watchdog->next_ns < soon ? soon : watchdog->next_ns;
}

void watchdog_catch_up(struct watchdog *watchdog)
{
    watchdog->next_ns = watchdog->due_ns;
}

void watchdog_done(struct watchdog *watchdog)
{
    for (size_t i = 0; i < WATCHDOG_TMPFS; i++) {
        fd_close(watchdog->tmpfs[i]);
    }
    free(watchdog->tree.pids);
    watchdog_init(watchdog);
}
