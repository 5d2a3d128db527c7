/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fresh: a stack of empty directories.
 * Owns: the directories on the stack.
 * Threads: any.
 * May include: base.
 */
#include "lib/work/fresh.h"

#include <dirent.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/fd.h"
#include "lib/work/workspace.h"

#define NAME_PREFIX "call"
#define EMPTY_ENTRIES 2 /* "." and ".." */

struct kept {
    char name[ID_SIZE];
    int directory;
};

struct fresh {
    int parent;
    pthread_mutex_t lock;
    struct kept *kept;
    size_t count;
    size_t max;
};

struct fresh *fresh_new(int parent, size_t keep)
{
    struct fresh *fresh = alloc_zero(1, sizeof(*fresh));

    fresh->parent = parent;
    fresh->max = keep;
    fresh->kept = alloc_zero(keep + 1, sizeof(*fresh->kept));
    (void)pthread_mutex_init(&fresh->lock, NULL);
    return fresh;
}

static void discard(struct fresh *fresh, const char *name, int directory)
{
    struct remove_left left;

    fd_close(directory);
    (void)workspace_remove(fresh->parent, name, &left);
}

void fresh_free(struct fresh *fresh)
{
    if (fresh == NULL) {
        return;
    }
    for (size_t i = 0; i < fresh->count; i++) {
        discard(fresh, fresh->kept[i].name, fresh->kept[i].directory);
    }
    (void)pthread_mutex_destroy(&fresh->lock);
    free(fresh->kept);
    free(fresh);
}

int fresh_take(struct fresh *fresh, char ret_name[static ID_SIZE], int *ret_directory,
               struct err *err)
{
    int directory = -1;

    (void)pthread_mutex_lock(&fresh->lock);
    if (fresh->count > 0) {
        const struct kept *kept = &fresh->kept[--fresh->count];

        directory = kept->directory;
        (void)snprintf(ret_name, ID_SIZE, "%s", kept->name);
    }
    (void)pthread_mutex_unlock(&fresh->lock);
    if (directory >= 0) {
        *ret_directory = directory;
        return 0;
    }
    (void)id_make(NAME_PREFIX, ret_name);
    return workspace_create(fresh->parent, ret_name, ret_directory, err);
}

static bool is_empty(int directory)
{
    char buffer[1024] __attribute__((aligned(16)));
    size_t entries = 0;
    ssize_t got;

    if (lseek(directory, 0, SEEK_SET) < 0) {
        return false;
    }
    got = getdents64(directory, buffer, sizeof(buffer));
    for (ssize_t at = 0; at < got; entries++) {
        const struct dirent64 *entry = (const void *)(buffer + at);

        at += entry->d_reclen;
    }
    return got > 0 && entries == EMPTY_ENTRIES;
}

/*
 * What a box can leave on an empty directory: a mode, extended attributes (with them ACLs), inode
 * flags, and a size, since directories of some file systems never shrink: that many names were in
 * it.
 */
static bool is_as_new(const struct fresh *fresh, int directory)
{
    struct stat status;
    struct stat parent;
    int flags = 0;
    int parent_flags = 0;

    if (fstat(directory, &status) < 0 || (status.st_mode & 07777) != S_IRWXU ||
        status.st_uid != geteuid() || status.st_size > (off_t)getpagesize() ||
        fstat(fresh->parent, &parent) < 0 || parent.st_dev != status.st_dev) {
        return false;
    }
    if (flistxattr(directory, NULL, 0) > 0) {
        return false;
    }
    /* Flags are inherited from the parent where there are any (ioctl_iflags(2)). */
    if (ioctl(directory, FS_IOC_GETFLAGS, &flags) == 0 &&
        (ioctl(fresh->parent, FS_IOC_GETFLAGS, &parent_flags) < 0 || flags != parent_flags)) {
        return false;
    }
    return is_empty(directory);
}

void fresh_give(struct fresh *fresh, const char *name, int directory)
{
    bool keep = is_as_new(fresh, directory);

    (void)pthread_mutex_lock(&fresh->lock);
    keep = keep && fresh->count < fresh->max;
    if (keep) {
        struct kept *kept = &fresh->kept[fresh->count++];

        (void)snprintf(kept->name, sizeof(kept->name), "%s", name);
        kept->directory = directory;
    }
    (void)pthread_mutex_unlock(&fresh->lock);
    if (!keep) {
        discard(fresh, name, directory);
    }
}
