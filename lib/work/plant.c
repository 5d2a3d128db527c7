/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plant: files, directories and links beneath a directory descriptor.
 * Owns: the list of directories whose modes are set later; the directory that was used last.
 * Threads: one at a time.
 * May include: base.
 */
#include "lib/work/plant.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/work/files.h"
#include "lib/work/path.h"

void plant_init(struct plant *plant, int directory)
{
    *plant = (struct plant){ .directory = directory, .parent = -1 };
}

void plant_done(struct plant *plant)
{
    for (size_t i = 0; i < plant->later_count; i++) {
        free(plant->later[i].path);
    }
    free(plant->later);
    free(plant->parent_path);
    fd_clear(&plant->parent);
}

/*
 * The directory that is to hold it, made if missing. A descriptor (O_PATH) that stays plant's, or
 * -1 with errno. Trees come one directory after the other, and what was made is not made anew, so
 * the last one is kept: looking it up costs as much as making a file.
 */
static int parent_of(struct plant *plant, const char *path)
{
    CLEANUP_FREE char *name = path_parent(path);
    struct err why = ERR_INIT;

    if (plant->parent >= 0 && strcmp(name, plant->parent_path) == 0) {
        return plant->parent;
    }
    fd_clear(&plant->parent);
    if (files_open_parent(plant->directory, path, true, &plant->parent, &why) < 0) {
        errno = why.sys;
        return -1;
    }
    free(plant->parent_path);
    plant->parent_path = CLEANUP_TAKE(name);
    return plant->parent;
}

int plant_file(struct plant *plant, const char *path)
{
    int parent = parent_of(plant, path);

    return parent < 0 ? -1
                      : fd_open_beneath(parent, path_base(path), O_WRONLY | O_CREAT | O_EXCL,
                                        S_IRUSR | S_IWUSR);
}

static void set_later(struct plant *plant, const char *path, mode_t mode,
                      const struct timespec *mtime)
{
    if (plant->later_count == plant->later_capacity) {
        plant->later_capacity = plant->later_capacity > 0 ? plant->later_capacity * 2 : 16;
        plant->later = alloc_resize(plant->later, plant->later_capacity, sizeof(*plant->later));
    }
    plant->later[plant->later_count++] =
        (struct plant_later){ .path = alloc_text(path), .mode = mode, .mtime = *mtime };
}

int plant_directory(struct plant *plant, const char *path, mode_t mode,
                    const struct timespec *mtime)
{
    int parent = parent_of(plant, path);
    struct stat status;

    if (parent < 0) {
        return -1;
    }
    if (mkdirat(parent, path_base(path), S_IRWXU) < 0) {
        if (errno != EEXIST || fstatat(parent, path_base(path), &status, AT_SYMLINK_NOFOLLOW) < 0) {
            return -1;
        }
        if (!S_ISDIR(status.st_mode)) {
            errno = EEXIST;
            return -1;
        }
    }
    set_later(plant, path, mode, mtime);
    return 0;
}

int plant_symlink(struct plant *plant, const char *path, const char *target,
                  const struct timespec *mtime)
{
    int parent = parent_of(plant, path);
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, *mtime };

    if (parent < 0 || symlinkat(target, parent, path_base(path)) < 0) {
        return -1;
    }
    (void)utimensat(parent, path_base(path), times, AT_SYMLINK_NOFOLLOW);
    return 0;
}

int plant_hard_link(struct plant *plant, const char *path, const char *target)
{
    int parent = parent_of(plant, path);
    CLEANUP_FD int target_parent = -1;
    struct err why = ERR_INIT;
    struct stat status;

    if (parent < 0) {
        return -1;
    }
    if (files_open_parent(plant->directory, target, false, &target_parent, &why) < 0) {
        errno = why.sys;
        return -1;
    }
    if (fstatat(target_parent, path_base(target), &status, AT_SYMLINK_NOFOLLOW) < 0) {
        return -1;
    }
    if (!S_ISREG(status.st_mode)) {
        errno = ENOENT;
        return -1;
    }
    return linkat(target_parent, path_base(target), parent, path_base(path), 0);
}

static int set_now(const struct plant *plant, const struct plant_later *later)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, later->mtime };
    CLEANUP_FD int fd = fd_open_beneath(plant->directory, later->path, O_RDONLY | O_DIRECTORY, 0);

    return fd < 0 || futimens(fd, times) < 0 || fchmod(fd, later->mode) < 0 ? -1 : 0;
}

/* Whatever is below another path sorts behind it. */
static int by_path(const void *a, const void *b)
{
    return path_compare(((const struct plant_later *)a)->path,
                        ((const struct plant_later *)b)->path);
}

int plant_finish(struct plant *plant, const struct cancel *cancel)
{
    if (plant->later_count > 1) {
        qsort(plant->later, plant->later_count, sizeof(*plant->later), by_path);
    }
    for (size_t i = plant->later_count; i > 0; i--) {
        if (cancel_get(cancel) != CANCEL_NONE) {
            errno = ECANCELED;
            return -1;
        }
        /* The same directory named twice by the archive: its second mode may lock us out. */
        if (set_now(plant, &plant->later[i - 1]) < 0 && errno != EACCES) {
            return -1;
        }
    }
    return 0;
}
