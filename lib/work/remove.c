/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remove: deletes a hostile directory tree, beneath descriptors only.
 * Owns: nothing between calls.
 * Threads: any; one removal belongs to one thread.
 * May include: base.
 */
#include "lib/work/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/id.h"
#include "lib/base/text.h"

#define DEPTH_MAX 32 /* open directories, and levels of recursion */

struct removal {
    int top; /* the tree's own directory, where deep ones are moved to; -1 before it is open */
    struct cancel *cancel;
    struct remove_left left;
    char path[REMOVE_PATH_SIZE]; /* of the directory being emptied, cut to fit */
    size_t path_length;
};

static bool remove_directory(struct removal *removal, int parent, const char *name, int depth);

static bool stopped(const struct removal *removal)
{
    return cancel_get(removal->cancel) != CANCEL_NONE;
}

static size_t path_enter(struct removal *removal, const char *name)
{
    size_t old = removal->path_length;
    size_t room = sizeof(removal->path) - old;
    int added = snprintf(removal->path + old, room, "%s%s", old > 0 ? "/" : "", name);

    if (added > 0) {
        removal->path_length += (size_t)added < room ? (size_t)added : room - 1;
    }
    return old;
}

static void path_leave(struct removal *removal, size_t old)
{
    removal->path[old] = '\0';
    removal->path_length = old;
}

/* Always false, for `return keep(...)`. */
static bool keep(struct removal *removal, const char *name, int sys)
{
    struct remove_left *left = &removal->left;

    if (left->count++ == 0) {
        size_t old = path_enter(removal, name);

        left->sys = sys;
        memcpy(left->first, removal->path, sizeof(left->first));
        path_leave(removal, old);
    }
    return false;
}

/* NO_XDEV keeps it out of mounts, NO_SYMLINKS out of everything else (openat2(2), Linux 5.6). */
static int open_child(int parent, const char *name, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };

    return (int)syscall(SYS_openat2, parent, name, &how, sizeof(how));
}

/* Gives the owner all rights to an open directory. True if that changed anything. */
static bool unlock(int directory)
{
    struct stat status;

    return fstat(directory, &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU &&
           fchmod(directory, S_IRWXU) == 0;
}

/* As unlock, for a directory that can't be opened: O_PATH needs no right to it, /proc does the rest
 * (fchmod refuses O_PATH descriptors, open(2)). */
static bool unlock_child(int parent, const char *name)
{
    CLEANUP_FD int handle = open_child(parent, name, O_PATH);
    char link[64];

    if (handle < 0) {
        return false;
    }
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", handle);
    return chmod(link, S_IRWXU) == 0;
}

static int open_directory(int parent, const char *name)
{
    int fd = open_child(parent, name, O_RDONLY);

    if (fd < 0 && errno == EACCES && unlock_child(parent, name)) {
        fd = open_child(parent, name, O_RDONLY);
    }
    return fd;
}

/* unlinkat, once more after taking back the right to write to the directory. */
static int unlink_child(int directory, const char *name, int flags)
{
    int result = unlinkat(directory, name, flags);

    if (result < 0 && errno == EACCES && unlock(directory)) {
        result = unlinkat(directory, name, flags);
    }
    if (result < 0 && errno == ENOENT) {
        return 0;
    }
    return result;
}

/*
 * Moves a directory that is too deep to the top of the tree, where a later pass finds it. Changing
 * a directory's parent needs the right to write to the directory itself too (rename(2)).
 */
static bool hoist(struct removal *removal, int directory, const char *name)
{
    char unique[ID_SIZE];

    (void)id_make("deep", unique);
    if (renameat(directory, name, removal->top, unique) == 0) {
        return true;
    }
    if (errno == EACCES) {
        (void)unlock(directory);
        (void)unlock(removal->top);
        (void)unlock_child(directory, name);
        if (renameat(directory, name, removal->top, unique) == 0) {
            return true;
        }
    }
    return keep(removal, name, errno);
}

static bool remove_entry(struct removal *removal, int directory, const struct dirent *entry,
                         int depth)
{
    if (entry->d_type != DT_DIR) {
        if (unlink_child(directory, entry->d_name, 0) == 0) {
            return true;
        }
        if (errno != EISDIR) { /* some file systems tell no type: it may be a directory */
            return keep(removal, entry->d_name, errno);
        }
    }
    if (unlink_child(directory, entry->d_name, AT_REMOVEDIR) == 0) {
        return true;
    }
    if (depth >= DEPTH_MAX) {
        return hoist(removal, directory, entry->d_name);
    }
    return remove_directory(removal, directory, entry->d_name, depth);
}

/* One pass over a directory's entries: how many went, and how many would not. */
static void remove_entries(struct removal *removal, DIR *dir, int depth, uint64_t ret_tally[2])
{
    const struct dirent *entry;

    ret_tally[0] = 0;
    ret_tally[1] = 0;
    rewinddir(dir);
    while ((entry = readdir(dir)) != NULL && !stopped(removal)) {
        bool gone;

        if (text_equal(entry->d_name, ".") || text_equal(entry->d_name, "..")) {
            continue;
        }
        gone = remove_entry(removal, dirfd(dir), entry, depth + 1);
        ret_tally[gone ? 0 : 1]++;
    }
}

/* Passes go on while they remove something: entries may be missed when a directory shrinks while it
 * is read, and deep directories arrive at the top. */
static bool empty_and_remove(struct removal *removal, DIR *dir, int parent, const char *name,
                             int depth)
{
    uint64_t before = removal->left.count;
    uint64_t tally[2];
    size_t old;

    do {
        removal->left.count = before;
        old = path_enter(removal, name);
        remove_entries(removal, dir, depth, tally);
        path_leave(removal, old);
        if (stopped(removal)) {
            return false;
        }
        if (tally[1] == 0 && unlink_child(parent, name, AT_REMOVEDIR) == 0) {
            return true;
        }
    } while (tally[0] > 0);
    return tally[1] > 0 ? false : keep(removal, name, errno);
}

static bool remove_directory(struct removal *removal, int parent, const char *name, int depth)
{
    CLEANUP_FD int fd = open_directory(parent, name);
    CLEANUP_DIR DIR *dir = NULL;

    if (fd < 0) {
        return errno == ENOENT ? true : keep(removal, name, errno);
    }
    dir = fdopendir(fd);
    if (dir == NULL) {
        return keep(removal, name, errno);
    }
    (void)CLEANUP_TAKE_FD(fd);
    if (removal->top < 0) {
        removal->top = dirfd(dir);
    }
    return empty_and_remove(removal, dir, parent, name, depth);
}

int remove_tree(int parent, const char *name, struct cancel *cancel, struct remove_left *ret_left)
{
    struct removal removal = { .top = -1, .cancel = cancel };
    int result = unlink_child(parent, name, 0);

    if (result < 0 && errno == EISDIR) {
        result = remove_directory(&removal, parent, name, 0) ? 0 : -1;
    } else if (result < 0) {
        (void)keep(&removal, name, errno);
    }
    if (result < 0 && stopped(&removal)) {
        removal.left.sys = ECANCELED;
    }
    *ret_left = removal.left;
    return result;
}
