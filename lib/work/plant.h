/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plant: makes the things an archive names, beneath one directory, each once. For lib/work alone.
 *
 * All return 0, or -1 with errno: EEXIST (the name was there), ELOOP (below a link), ENOTDIR (below
 * a file), EXDEV, ENOENT (the target of a hard link), ENOSPC ...
 */
#ifndef KERND_WORK_PLANT_H
#define KERND_WORK_PLANT_H

#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "lib/base/cancel.h"

/* Of a directory, set when all is in it: mode 0555 would keep its own members out. */
struct plant_later {
    char *path;
    mode_t mode;
    struct timespec mtime;
};

struct plant {
    int directory; /* borrowed */
    int parent;    /* the directory that the last thing was put into (O_PATH), or -1 */
    char *parent_path;
    struct plant_later *later;
    size_t later_count;
    size_t later_capacity;
};

void plant_init(struct plant *plant, int directory);
void plant_done(struct plant *plant);

/* A new empty file, mode 0600; parents are made. The descriptor, or -1. */
int plant_file(struct plant *plant, const char *path);

/* The same again is fine. Mode and mtime are set by plant_finish. */
int plant_directory(struct plant *plant, const char *path, mode_t mode,
                    const struct timespec *mtime);

int plant_symlink(struct plant *plant, const char *path, const char *target,
                  const struct timespec *mtime);

/* target: a regular file that was planted before. */
int plant_hard_link(struct plant *plant, const char *path, const char *target);

/* Sets modes and times of directories, the deepest first. ECANCELED when the token is fired. */
int plant_finish(struct plant *plant, const struct cancel *cancel);

#endif
