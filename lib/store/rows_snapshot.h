/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_snapshot: the table of snapshots. Their bytes are files named by digest, shared by rows.
 */
#ifndef KERND_STORE_ROWS_SNAPSHOT_H
#define KERND_STORE_ROWS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/store/store.h"

struct rows_snapshot {
    char id[STORE_ID_SIZE];
    char name[STORE_ID_SIZE];       /* "": none; else no other snapshot has it */
    char session_id[STORE_ID_SIZE]; /* "": imported */
    uint64_t caller;
    char digest[65]; /* SHA-256 of the archive, hex */
    uint64_t bytes;  /* of the archive */
    uint64_t entries;
    char *labels; /* texts of the layer above, NULL: none */
    char *left_out;
    int64_t created_ms;
};
void rows_snapshot_done(struct rows_snapshot *row);

/* 0, or -1 CONFLICT when the id or the name is taken. */
int rows_snapshot_insert(struct store *store, const struct rows_snapshot *row, struct err *err);

/* The same in place of another row, in one step. */
int rows_snapshot_replace(struct store *store, const char *old_id, const struct rows_snapshot *row,
                          struct err *err);

/* By id, or by name. The caller calls rows_snapshot_done. 0, or -1 SNAPSHOT_NOT_FOUND. */
int rows_snapshot_get(struct store *store, const char *id_or_name, struct rows_snapshot *ret_row,
                      struct err *err);

/* 0 also when it is not there. *ret_digest_used: do other rows share the bytes? */
int rows_snapshot_delete(struct store *store, const struct rows_snapshot *row,
                         bool *ret_digest_used, struct err *err);

struct rows_snapshot_filter {
    size_t limit;           /* > 0 */
    const char *cursor;     /* NULL: from the start */
    const char *session_id; /* NULL: any */
    bool by_caller;
    uint64_t caller;
};

struct rows_snapshot_page {
    struct rows_snapshot *rows;
    size_t count;
    char *next_cursor; /* NULL: this was the last page */
};
void rows_snapshot_page_done(struct rows_snapshot_page *page);

/* Newest first. 0, or -1 BAD_CURSOR. */
int rows_snapshot_list(struct store *store, const struct rows_snapshot_filter *filter,
                       struct rows_snapshot_page *ret_page, struct err *err);

/* The oldest one without a name that is older than this. 0, or -1 SNAPSHOT_NOT_FOUND. */
int rows_snapshot_oldest(struct store *store, int64_t before_ms, struct rows_snapshot *ret_row,
                         struct err *err);

/* Bytes of the archives of all snapshots, or of those with a name; shared ones once. */
int rows_snapshot_total(struct store *store, bool named, uint64_t *ret_bytes, struct err *err);

/* Is there a row with this digest? For the sweep of files without rows. */
int rows_snapshot_has_digest(struct store *store, const char *digest, bool *ret_has,
                             struct err *err);

#endif
