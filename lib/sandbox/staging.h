/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staging: files that come into a session together: unpacked aside first, put in place when all is
 * well. For lib/sandbox alone; any thread but the event one.
 *
 *     staging_open     an empty directory on the workspace's own file system
 *     staging_unpack   an archive into it
 *     staging_swap     the session has these files now and no others
 *     staging_merge    or: it has these files besides its own
 *     staging_close    always; without one of the last two nothing has changed
 *
 * Aside is a directory that no box sees, but within the workspace if that is a caller's own.
 */
#ifndef KERND_SANDBOX_STAGING_H
#define KERND_SANDBOX_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/cancel.h"
#include "lib/base/err.h"
#include "lib/base/id.h"

struct sandbox;
struct session_entry;

#define STAGING_PREFIX "staging" /* of what lies aside, below the workspaces */

struct staging {
    struct sandbox *sandbox;
    struct session_entry *entry; /* held by the caller */
    int directory;
    int lock;           /* on a workspace that is changed from inside; -1: not locked */
    char name[ID_SIZE]; /* below the workspaces, "": within the workspace */
    bool inside;        /* within the workspace */
    bool old_left;      /* replaced contents are within the workspace */
};

/* 0, or -1 SESSION_BUSY (another one is at the same directory), CONFLICT, STORE_FULL, IO. */
int staging_open(struct sandbox *sandbox, struct session_entry *entry, struct staging *ret_staging,
                 struct err *err);

struct staging_archive {
    int file;              /* open for reading */
    const char *directory; /* where its members go, parsed */
    bool merge;            /* what the session has already counts against its quota */
    struct cancel *cancel; /* may be NULL */
};

struct staging_result {
    uint64_t entries;
    uint64_t bytes;
};

/* 0, or -1 BAD_ARCHIVE, WORKSPACE_FULL (above diskMb, or the disk is full), CANCELLED, IO. */
int staging_unpack(struct staging *staging, const struct staging_archive *archive,
                   struct staging_result *ret_result, struct err *err);

/* In one step, unless the workspace is a caller's own or kernels are open. -1 SESSION_BUSY. */
int staging_swap(struct staging *staging, struct err *err);

/* -1 FILE_EXISTS, BAD_PATH ...: see merge.h. */
int staging_merge(struct staging *staging, struct err *err);

void staging_close(struct staging *staging);

/* Bytes that may still be written to the file system of an open directory; some are kept free. */
uint64_t staging_room(int directory);

/* What the members of one archive may be at most, and no more than `bytes` together. */
struct unpack_limits;
void staging_limits(uint64_t bytes, struct cancel *cancel, struct unpack_limits *ret_limits);

#endif
