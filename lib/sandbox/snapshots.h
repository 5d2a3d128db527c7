/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshots: the files of a session at one time, kept as an archive (snapshots_make.h makes them).
 * Any thread but the event one.
 *
 * A snapshot has an id, and may have a name, by which it is found as well. Its archive is stored
 * once however many snapshots have the same. One without a name goes by itself when it is old or
 * when room is needed; one with a name stays. One that the actor may not see is not there.
 */
#ifndef KERND_SANDBOX_SNAPSHOTS_H
#define KERND_SANDBOX_SNAPSHOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/base/strv.h"
#include "lib/sandbox/session.h"

struct sandbox;
struct snapshots;

struct snapshots_config {
    const char *directory; /* of the archives */
    uint64_t max_bytes;    /* of all archives; 0: 10 GiB */
    double max_age_s;      /* of those without a name; 0: 30 days */
};

/* Removes archives that no snapshot has. NULL with err. */
struct snapshots *snapshots_open(struct sandbox *sandbox, const struct snapshots_config *config,
                                 struct err *err);
void snapshots_close(struct snapshots *snapshots); /* NULL is fine */

/* One round of the janitor. */
void snapshots_expire(struct snapshots *snapshots);

/* Owned; snapshots_view_done frees. */
struct snapshots_view {
    char id[SESSION_ID_SIZE];
    char name[SESSION_ID_SIZE];       /* "": none */
    char session_id[SESSION_ID_SIZE]; /* "": imported */
    char digest[HASH_HEX_SIZE];       /* SHA-256 of the archive */
    uint64_t bytes;                   /* of the archive */
    uint64_t entries;
    int64_t created_ms;
    struct strv labels;   /* "key=value" */
    struct strv left_out; /* "why path": what is not in the archive; see pack.h */
    bool left_truncated;  /* there is more of that */
};
void snapshots_view_done(struct snapshots_view *view);

/* By id or name. 0, or -1 SNAPSHOT_NOT_FOUND. */
int snapshots_get(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                  struct snapshots_view *ret_view, struct err *err);

/* Its archive, open for reading, for the caller to close; ret_view is as of snapshots_get. */
int snapshots_read(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                   int *ret_file, struct snapshots_view *ret_view, struct err *err);

struct snapshots_filter {
    size_t limit;           /* 1-1000 */
    const char *cursor;     /* NULL: from the start */
    const char *session_id; /* NULL: any */
};

struct snapshots_page {
    struct snapshots_view *items;
    size_t count;
    char *next_cursor; /* NULL at the end */
};
void snapshots_page_done(struct snapshots_page *page);

/* Newest first. -1 BAD_CURSOR. */
int snapshots_list(struct sandbox *sandbox, const struct session_actor *actor,
                   const struct snapshots_filter *filter, struct snapshots_page *ret_page,
                   struct err *err);

/* 0 also when it is not there. */
int snapshots_delete(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                     struct err *err);

#endif
