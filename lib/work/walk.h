/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: goes through a workspace, entry by entry, in the order of path_compare.
 *
 * Follows no symbolic link and leaves the workspace by no race. At most 32 directories are open at
 * once; memory is the names of the directories on the way down. What changes during the walk may
 * be seen or not. Belongs to one thread.
 */
#ifndef KERND_WORK_WALK_H
#define KERND_WORK_WALK_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

struct walk;

/* Borrowed strings that live as long as the walk. */
struct walk_options {
    const char *start; /* directory to walk, parsed; its own entry is not told */
    bool recursive;
    const char *after;       /* NULL, or go on behind this path (it need not exist) */
    const char *const *skip; /* whole paths to leave out with all below; NULL-terminated */
};

struct walk_entry {
    const char *path;   /* from the workspace on */
    const char *name;   /* its last component */
    int directory;      /* descriptor of the directory that holds it, for *at calls */
    unsigned char type; /* DT_REG ... of readdir(3), never DT_UNKNOWN */
    bool unreadable;    /* a directory to be walked that can't be opened or read */
};

/* 0, or -1 FILE_NOT_FOUND, BAD_PATH, FORBIDDEN, IO for the start directory. */
int walk_open(int root, const struct walk_options *options, struct walk **ret_walk,
              struct err *err);

/* True and the next entry, good until the next call; false at the end. */
bool walk_next(struct walk *walk, struct walk_entry *ret_entry);

/* Does not go down into the directory that walk_next just told. */
void walk_prune(struct walk *walk);

/* Was anything left out: a path above 4095 bytes, names above 64 MiB in the directories held? */
bool walk_incomplete(const struct walk *walk);

void walk_close(struct walk *walk);

#endif
