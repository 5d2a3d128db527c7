/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the quota of a workspace and its ceiling of files, by measuring.
 * Owns: descriptors of the workspace and of the directories where a round is.
 * Threads: the box's.
 * May include: base.
 */
#include "lib/box/diskwatch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

#define SLICE_ENTRIES 1000
/* Fast disks and the page cache take about this much. */
#define FILL_BYTES_PER_NS 2
#define PAUSE_MIN_NS (10 * CLOCK_NS_PER_MS)
#define PAUSE_MAX_NS (200 * CLOCK_NS_PER_MS)
/* Where files are only counted. A disk takes some 100,000 new ones in this time. */
#define PAUSE_COUNT_NS (1000 * CLOCK_NS_PER_MS)
/* Looking may take this part of the time at most: 1 in ... */
#define COST_PART 10
#define PAUSE_COSTLY_NS (1000 * CLOCK_NS_PER_MS)
/* What the file system needs of its own for files that fill the quota exactly, and may be told with
 * them: a single file ends there by its writer's own limit (RLIMIT_FSIZE), which is no fault. */
#define SLACK_BYTES (UINT64_C(1) << 20)
#define BLOCK_BYTES 512 /* the unit of st_blocks, whatever the file system's (stat(3type)) */

void diskwatch_init(struct diskwatch *watch)
{
    *watch = (struct diskwatch){ .next_ns = CLOCK_NEVER, .root = -1 };
}

int diskwatch_open(struct diskwatch *watch, const char *workspace)
{
    watch->root = open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return watch->root < 0 ? -1 : 0;
}

void diskwatch_start(struct diskwatch *watch, uint64_t cap, uint64_t files_cap)
{
    watch->cap = cap;
    watch->files_cap = files_cap;
    watch->next_ns = CLOCK_NEVER;
    if (watch->root >= 0 && cap > 0) {
        watch->next_ns = clock_mono_ns() + PAUSE_MIN_NS;
    } else if (watch->root >= 0 && files_cap > 0) {
        watch->next_ns = clock_mono_ns() + PAUSE_COUNT_NS;
    }
}

/* Closes a directory for as long as the round is further down. */
static void leave(struct diskwatch_level *level)
{
    struct stat status;

    if (fstat(dirfd(level->dir), &status) == 0) {
        level->device = status.st_dev;
        level->inode = status.st_ino;
    }
    level->position = telldir(level->dir);
    (void)closedir(CLEANUP_TAKE(level->dir));
}

/* Opens it again from the one below. False: it is not above that any more. */
static bool come_back(struct diskwatch_level *level, int below)
{
    CLEANUP_FD int fd = openat(below, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0 || status.st_dev != level->device ||
        status.st_ino != level->inode || (level->dir = fdopendir(fd)) == NULL) {
        return false;
    }
    (void)CLEANUP_TAKE_FD(fd);
    seekdir(level->dir, level->position);
    return true;
}

static void enter(struct diskwatch *watch, DIR *dir)
{
    if (watch->depth == watch->room) {
        watch->room += DISKWATCH_OPEN;
        watch->levels = alloc_resize(watch->levels, watch->room, sizeof(*watch->levels));
    }
    if (watch->depth >= DISKWATCH_OPEN &&
        watch->levels[watch->depth - DISKWATCH_OPEN].dir != NULL) {
        leave(&watch->levels[watch->depth - DISKWATCH_OPEN]);
    }
    watch->levels[watch->depth++] = (struct diskwatch_level){ .dir = dir };
}

/* Goes into a directory, unless it is too deep, closed or gone. */
static void push(struct diskwatch *watch, int dir, const char *name)
{
    int fd = -1;
    DIR *opened = NULL;

    if (watch->depth < DISKWATCH_DEPTH) {
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        opened = fd < 0 ? NULL : fdopendir(fd);
    }
    if (opened != NULL) {
        enter(watch, opened);
    } else {
        fd_close(fd);
    }
}

/* Back out of a directory; out of all, when the way back is not there any more. */
static void pop(struct diskwatch *watch)
{
    DIR *dir = watch->levels[--watch->depth].dir;

    if (watch->depth > 0 && watch->levels[watch->depth - 1].dir == NULL &&
        !come_back(&watch->levels[watch->depth - 1], dirfd(dir))) {
        watch->depth = 0; /* those above are closed, too */
    }
    (void)closedir(dir);
}

static bool is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void add(struct diskwatch *watch, int dir, const char *name)
{
    struct stat status;

    if (is_dot(name) || fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        return;
    }
    watch->files++;
    if (S_ISDIR(status.st_mode)) {
        watch->sum += (uint64_t)status.st_blocks * BLOCK_BYTES;
        push(watch, dir, name);
    } else if (status.st_nlink > 0) {
        watch->sum += (uint64_t)status.st_blocks * BLOCK_BYTES / status.st_nlink;
    }
}

/* Some entries further. */
static void step(struct diskwatch *watch)
{
    for (int i = 0; i < SLICE_ENTRIES && watch->depth > 0; i++) {
        DIR *dir = watch->levels[watch->depth - 1].dir;
        const struct dirent *entry = readdir(dir);

        if (entry != NULL) {
            add(watch, dirfd(dir), entry->d_name);
        } else {
            pop(watch);
        }
    }
}

static int64_t pause_after_round(const struct diskwatch *watch)
{
    uint64_t left = (watch->cap + SLACK_BYTES - watch->sum) / FILL_BYTES_PER_NS;
    int64_t pause = left < (uint64_t)PAUSE_MAX_NS ? (int64_t)left : PAUSE_MAX_NS;
    int64_t cost = watch->spent_ns * COST_PART;

    if (watch->cap == 0) {
        return PAUSE_COUNT_NS + cost;
    }
    cost = cost < PAUSE_COSTLY_NS ? cost : PAUSE_COSTLY_NS;
    pause = pause < PAUSE_MIN_NS ? PAUSE_MIN_NS : pause;
    return pause > cost ? pause : cost;
}

/* Notes what is above its cap, if anything is. */
static bool is_over(struct diskwatch *watch)
{
    if (watch->cap > 0 && watch->sum > watch->cap + SLACK_BYTES) {
        watch->over_bytes = watch->sum;
    } else if (watch->files_cap > 0 && watch->files > watch->files_cap) {
        watch->over_files = watch->files;
    }
    return watch->over_bytes > 0 || watch->over_files > 0;
}

bool diskwatch_look(struct diskwatch *watch)
{
    int64_t began = clock_mono_ns();
    int64_t ended;

    if (began < watch->next_ns) {
        return false;
    }
    if (watch->depth == 0) {
        watch->sum = 0;
        watch->files = 0;
        watch->spent_ns = 0;
        push(watch, watch->root, ".");
    }
    step(watch);
    ended = clock_mono_ns();
    watch->spent_ns += ended - began;
    if (is_over(watch)) {
        return true;
    }
    /* In the middle of a round the pause is as long as the slice was, so that it gets done. */
    watch->next_ns = ended + (watch->depth > 0 ? ended - began : pause_after_round(watch));
    return false;
}

void diskwatch_done(struct diskwatch *watch)
{
    while (watch->depth > 0) {
        DIR *dir = watch->levels[--watch->depth].dir;

        if (dir != NULL) {
            (void)closedir(dir);
        }
    }
    free(watch->levels);
    fd_close(watch->root);
    diskwatch_init(watch);
}
