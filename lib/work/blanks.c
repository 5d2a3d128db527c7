/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blanks: the stack of directories that are kept.
 * Owns: those directories, open.
 * Threads: any.
 * May include: base.
 */
#include "lib/work/blanks.h"

#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/work/workspace.h"

/* As many as are given back and taken again at one moment. */
#define KEPT_MAX 16

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

struct kept {
    struct blank blank;
    int64_t since_ns;
};

struct blanks {
    int parent;
    const char *prefix;
    bool trusted;         /* the file system's change times */
    pthread_mutex_t lock; /* guards what follows */
    struct kept kept[KEPT_MAX];
    size_t count; /* the one that was kept last is taken first */
};

/* Others may have their times from elsewhere (network, user space), or of another file (overlay).
 */
static bool has_true_times(int parent)
{
    struct statfs system;

    return fstatfs(parent, &system) == 0 &&
           (system.f_type == EXT4_SUPER_MAGIC || system.f_type == XFS_SUPER_MAGIC ||
            system.f_type == BTRFS_SUPER_MAGIC || system.f_type == F2FS_SUPER_MAGIC ||
            system.f_type == TMPFS_MAGIC);
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static bool is_same(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool note_times(struct blank *blank)
{
    struct stat status;
    const bool known = fstat(blank->root, &status) == 0;

    if (known) {
        blank->changed = status.st_ctim;
        blank->read = status.st_atim;
    }
    return known;
}

struct blanks *blanks_new(int parent, const char *prefix)
{
    struct blanks *blanks = alloc_zero(1, sizeof(*blanks));

    blanks->parent = parent;
    blanks->prefix = prefix;
    blanks->trusted = has_true_times(parent);
    (void)pthread_mutex_init(&blanks->lock, NULL);
    return blanks;
}

static int discard(struct blanks *blanks, struct blank *blank, struct remove_left *ret_left)
{
    fd_clear(&blank->root);
    return workspace_remove(blanks->parent, blank->name, ret_left);
}

void blanks_free(struct blanks *blanks)
{
    if (blanks != NULL) {
        blanks_age(blanks, INT64_MAX);
        (void)pthread_mutex_destroy(&blanks->lock);
        free(blanks);
    }
}

/* Its name says nothing of a call: a later one may see it in its table of mounts. */
static int make(struct blanks *blanks, struct blank *ret_blank, struct err *err)
{
    struct blank blank = { .root = -1 };

    if (workspace_create(blanks->parent, id_make(blanks->prefix, blank.name), &blank.root, err) <
        0) {
        return -1;
    }
    if (blanks->trusted) {
        (void)note_times(&blank);
    }
    *ret_blank = blank;
    return 0;
}

int blanks_open(struct blanks *blanks, struct blank *ret_blank, struct err *err)
{
    bool found;

    (void)pthread_mutex_lock(&blanks->lock);
    found = blanks->count > 0;
    if (found) {
        blanks->count--;
        *ret_blank = blanks->kept[blanks->count].blank;
    }
    (void)pthread_mutex_unlock(&blanks->lock);
    return found ? 0 : make(blanks, ret_blank, err);
}

void blanks_watch(struct blank *blank)
{
    struct timespec now;

    /* Whole seconds are those of a file system that knows no less: ext4 with small inodes. */
    blank->watched = blank->changed.tv_nsec != 0 &&
                     clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 &&
                     is_before(&blank->changed, &now);
}

static bool is_untouched(const struct blank *blank, struct timespec *ret_read)
{
    struct stat status;

    if (!blank->watched || fstat(blank->root, &status) < 0) {
        return false;
    }
    *ret_read = status.st_atim;
    return is_same(&status.st_ctim, &blank->changed);
}

bool blanks_untouched(const struct blank *blank)
{
    struct timespec read;

    return is_untouched(blank, &read);
}

/* For nobody to see when it was read: its times are those of now. */
static bool renew(struct blank *blank, const struct timespec *read)
{
    return is_same(read, &blank->read) || (futimens(blank->root, NULL) == 0 && note_times(blank));
}

static bool keep(struct blanks *blanks, struct blank *blank)
{
    bool kept;

    blank->watched = false;
    (void)pthread_mutex_lock(&blanks->lock);
    kept = blanks->count < KEPT_MAX;
    if (kept) {
        blanks->kept[blanks->count++] =
            (struct kept){ .blank = *blank, .since_ns = clock_mono_ns() };
    }
    (void)pthread_mutex_unlock(&blanks->lock);
    return kept;
}

int blanks_close(struct blanks *blanks, struct blank *blank, bool unreachable,
                 struct remove_left *ret_left)
{
    struct timespec read;

    return unreachable && is_untouched(blank, &read) && renew(blank, &read) && keep(blanks, blank)
               ? 0
               : discard(blanks, blank, ret_left);
}

/* Locked: takes those out that were kept first, for the caller to remove. */
static size_t take_old(struct blanks *blanks, int64_t before_ns, struct blank *ret_old)
{
    size_t old = 0;

    while (old < blanks->count && blanks->kept[old].since_ns < before_ns) {
        ret_old[old] = blanks->kept[old].blank;
        old++;
    }
    blanks->count -= old;
    for (size_t i = 0; i < blanks->count; i++) {
        blanks->kept[i] = blanks->kept[i + old];
    }
    return old;
}

void blanks_age(struct blanks *blanks, int64_t before_ns)
{
    struct blank old[KEPT_MAX];
    struct remove_left left;
    size_t count;

    (void)pthread_mutex_lock(&blanks->lock);
    count = take_old(blanks, before_ns, old);
    (void)pthread_mutex_unlock(&blanks->lock);
    for (size_t i = 0; i < count; i++) {
        (void)discard(blanks, &old[i], &left);
    }
}
