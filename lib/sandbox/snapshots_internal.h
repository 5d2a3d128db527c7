/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshots_internal: the store of snapshots, for lib/sandbox/snapshots*.c alone.
 */
#ifndef KERND_SANDBOX_SNAPSHOTS_INTERNAL_H
#define KERND_SANDBOX_SNAPSHOTS_INTERNAL_H

#include <pthread.h>

#include "lib/sandbox/snapshots.h"
#include "lib/store/rows_snapshot.h"

struct snapshots {
    struct sandbox *sandbox;
    int depot; /* the archives, by digest */
    uint64_t max_bytes;
    int64_t max_age_ms;
    /* A row and its archive come and go together: held while one of them does. */
    pthread_mutex_t lock;
};

/* Locked. The row, and the archive if no other row has it. */
int snapshots_remove_row(struct snapshots *snapshots, const struct rows_snapshot *row,
                         struct err *err);

/*
 * Locked. Makes room for so many bytes more, at the price of the oldest without a name. 0, or -1
 * STORE_FULL.
 */
int snapshots_make_room(struct snapshots *snapshots, uint64_t bytes, struct err *err);

/* The actor's row by id or name. 0, or -1 SNAPSHOT_NOT_FOUND. rows_snapshot_done. */
int snapshots_find(struct snapshots *snapshots, const struct session_actor *actor, const char *id,
                   struct rows_snapshot *ret_row, struct err *err);

void snapshots_view_from_row(const struct rows_snapshot *row, struct snapshots_view *ret_view);

#endif
