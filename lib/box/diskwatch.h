/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diskwatch: keeps a workspace under its quota by adding up, now and then, the blocks of its files,
 * and under a ceiling of files and directories by counting them.
 *
 * A round over a large tree is divided into slices, so that nothing else waits for it, and takes a
 * small part of the time at most. Between rounds the box may overshoot by what a disk takes in the
 * pause, and a little is forgiven. A file of several names counts for each name its part. Not seen:
 * files without a name that are still open, what lies in directories that the box closed to
 * everybody or further down than any path leads (PATH_MAX), and the rest of a round when what it is
 * in the middle of, far down, is moved elsewhere. Without a quota the count alone is at stake: then
 * it looks less often.
 */
#ifndef KERND_BOX_DISKWATCH_H
#define KERND_BOX_DISKWATCH_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Directories that are open at once, and how far down it goes. */
#define DISKWATCH_OPEN 64
#define DISKWATCH_DEPTH 4096

/* A directory that a round is in the middle of. */
struct diskwatch_level {
    DIR *dir; /* NULL: too many are open, it is taken up again where it was left */
    dev_t device;
    ino_t inode;
    long position;
};

struct diskwatch {
    uint64_t cap;                   /* bytes, 0: no quota */
    uint64_t files_cap;             /* files and directories, 0: no ceiling */
    int64_t next_ns;                /* when to look again; CLOCK_NEVER when off */
    int root;                       /* the workspace */
    struct diskwatch_level *levels; /* where the round is */
    size_t room;                    /* of levels */
    size_t depth;                   /* 0: between rounds */
    uint64_t sum;                   /* of this round */
    uint64_t files;                 /* of this round */
    int64_t spent_ns;               /* by this round */
    uint64_t over_bytes;            /* the sum that passed the cap, 0: none */
    uint64_t over_files;            /* the count that passed the ceiling, 0: none */
};

/* An idle one: next_ns is CLOCK_NEVER, nothing to free. */
void diskwatch_init(struct diskwatch *watch);

/* Opens the workspace. 0 or -1 with errno. */
int diskwatch_open(struct diskwatch *watch, const char *workspace);

/* Watches from now on; without any cap it stays idle. */
void diskwatch_start(struct diskwatch *watch, uint64_t cap, uint64_t files_cap);

/* Does a slice if it is time. True: the workspace is above a cap (over_bytes or over_files). */
bool diskwatch_look(struct diskwatch *watch);

void diskwatch_done(struct diskwatch *watch);

#endif
