/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_archive: all files of a session, or of a directory of it, as an archive, out and in. Any
 * thread but the event one; blocks as long as the disk does.
 */
#ifndef KERND_SANDBOX_SESSION_ARCHIVE_H
#define KERND_SANDBOX_SESSION_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/cancel.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/sandbox/session.h"

struct sandbox;

/* Paths of a workspace that are in no archive. */
extern const char *const session_archive_skip[3];

struct session_archive_options {
    const char *path; /* of a directory, as clients write it; "": all */
    size_t path_size;
    bool gzip;  /* else plain tar */
    bool links; /* with the symbolic links that stay inside */
    struct cancel *cancel;
};

struct session_archive {
    int file; /* nameless, for the caller to close */
    uint64_t bytes;
    uint64_t entries;
    size_t left_out; /* how many things are not in it */
    char digest[HASH_HEX_SIZE];
};

/* 0, or -1 SESSION_NOT_FOUND ..., FILE_NOT_FOUND, BAD_PATH, STORE_FULL, CANCELLED, IO. */
int session_archive_make(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                         const struct session_archive_options *options,
                         struct session_archive *ret_archive, struct err *err);

struct session_archive_taken {
    uint64_t entries;
    uint64_t bytes; /* of file data */
};

struct session_archive_source {
    int file; /* the archive, at its start; borrowed */
    const char *path;
    size_t path_size;
    bool replace; /* nothing else is in the session then; not with a path */
    struct cancel *cancel;
};

/*
 * Puts the files of an archive into a session, besides what is there or in its place. All or
 * nothing when the archive is bad or too large. 0, or -1 SESSION_NOT_FOUND ..., BAD_ARCHIVE,
 * BAD_PATH, FILE_EXISTS, WORKSPACE_FULL, SESSION_BUSY (replace, and something runs), CANCELLED, IO.
 */
int session_archive_take(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                         const struct session_archive_source *source,
                         struct session_archive_taken *ret_taken, struct err *err);

struct session_archive_snapshot {
    const char *id; /* or name */
    struct cancel *cancel;
};

/* The files of a session become those of a snapshot, all or nothing; errors as above. */
int session_archive_restore(struct sandbox *sandbox, const struct session_actor *actor,
                            const char *id, const struct session_archive_snapshot *snapshot,
                            struct session_archive_taken *ret_taken, struct err *err);

struct session_entry;

/* The same for a session that is being made and that nobody else can use yet. */
int session_archive_fill(struct sandbox *sandbox, const struct session_actor *actor,
                         struct session_entry *entry,
                         const struct session_archive_snapshot *snapshot, struct err *err);

#endif
