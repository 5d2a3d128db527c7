/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_session: the table of sessions and their labels.
 */
#ifndef KERND_STORE_ROWS_SESSION_H
#define KERND_STORE_ROWS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/strv.h"
#include "lib/store/store.h"

struct rows_session {
    char id[STORE_ID_SIZE];
    char state[16];
    char *options;   /* text of the layer above */
    char *workspace; /* name of an owned one, or absolute path of the caller's */
    bool owned;
    uint64_t caller;
    int64_t created_ms;
    int64_t updated_ms;
    int64_t used_ms;
    int64_t expires_ms; /* 0: never */
    struct strv labels; /* "key=value"; found by equality */
};
void rows_session_done(struct rows_session *row);

/* 0, or -1 SESSION_EXISTS. */
int rows_session_insert(struct store *store, const struct rows_session *row, struct err *err);

/* The caller calls rows_session_done. 0, or -1 SESSION_NOT_FOUND. */
int rows_session_get(struct store *store, const char *id, struct rows_session *ret_row,
                     struct err *err);

/* All but id, caller and created_ms; used_ms never goes back. 0, or -1 SESSION_NOT_FOUND. */
int rows_session_update(struct store *store, const struct rows_session *row, struct err *err);

/* used_ms and expires_ms, written some milliseconds later. Nothing if the session is gone. */
void rows_session_touch_soon(struct store *store, const char *id, int64_t used_ms,
                             int64_t expires_ms);

/* With its labels and kernels. 0 also when it is not there. */
int rows_session_delete(struct store *store, const char *id, struct err *err);

struct rows_session_filter {
    size_t limit;       /* > 0 */
    const char *cursor; /* NULL: from the start */
    const char *state;  /* NULL: any */
    const char *except; /* a state that is left out; NULL: none */
    const char *label;  /* "key=value", NULL: any */
    bool by_caller;
    uint64_t caller;
};

struct rows_session_page {
    struct rows_session *rows;
    size_t count;
    char *next_cursor; /* NULL: this was the last page */
};
void rows_session_page_done(struct rows_session_page *page);

/* Newest first. 0, or -1 BAD_CURSOR. */
int rows_session_list(struct store *store, const struct rows_session_filter *filter,
                      struct rows_session_page *ret_page, struct err *err);

/* Appends up to limit ids whose expires_ms is set and not after now_ms, the earliest first. */
int rows_session_expired(struct store *store, int64_t now_ms, size_t limit, struct strv *ids,
                         struct err *err);

/* Is there one (but for expired ones) whose options hold this text? Reads them all. 0 or -1. */
int rows_session_find(struct store *store, const char *part, char ret_id[static STORE_ID_SIZE],
                      bool *ret_found, struct err *err);

/* Adds the ids of sessions in state `creating` or `deleting`, by an index of them alone. 0 or -1.
 */
int rows_session_half_done(struct store *store, struct strv *ids, struct err *err);

/* Adds the names of the owned workspaces that there should be. Reads all rows. 0 or -1. */
int rows_session_workspaces(struct store *store, struct strv *names, struct err *err);

#endif
