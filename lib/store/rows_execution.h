/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_execution: the table of executions. Code, environment and output are not in it.
 */
#ifndef KERND_STORE_ROWS_EXECUTION_H
#define KERND_STORE_ROWS_EXECUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/store/store.h"

#define ROWS_EXECUTION_HASH_SIZE 65 /* SHA-256 in hex, and a NUL */

struct rows_execution {
    char id[STORE_ID_SIZE];
    char session_id[STORE_ID_SIZE]; /* "": a one-shot */
    char kernel_id[STORE_ID_SIZE];  /* "": none */
    char kind[16];
    char state[16]; /* "queued", "running" or "done" */
    uint64_t caller;
    int64_t created_ms;
    int64_t started_ms;  /* 0: never */
    int64_t finished_ms; /* 0: not yet */
    uint64_t code_size;
    char code_sha256[ROWS_EXECUTION_HASH_SIZE]; /* "": none */
    bool has_exit_code;
    int exit_code;
    char fault[24]; /* "": none */
    char *summary;  /* small text of the layer above, NULL: none */
};
void rows_execution_done(struct rows_execution *row);

/* A new row. 0, or -1 EXECUTION_EXISTS. */
int rows_execution_insert(struct store *store, const struct rows_execution *row, struct err *err);

/* Deletes a row. 0 also when there is none. */
int rows_execution_remove(struct store *store, const char *id, struct err *err);

/*
 * Makes or replaces a row some milliseconds later (all but id, session, kernel, kind, caller and
 * created_ms of one that is there). Copies. Costs its caller a few microseconds.
 */
void rows_execution_put_soon(struct store *store, const struct rows_execution *row);

/* Sees what was put before. The caller calls rows_execution_done. -1 EXECUTION_NOT_FOUND. */
int rows_execution_get(struct store *store, const char *id, struct rows_execution *ret_row,
                       struct err *err);

struct rows_execution_filter {
    size_t limit;           /* > 0 */
    const char *cursor;     /* NULL: from the start */
    const char *session_id; /* NULL: any */
    const char *state;      /* NULL: any */
    bool by_caller;
    uint64_t caller;
};

struct rows_execution_page {
    struct rows_execution *rows;
    size_t count;
    char *next_cursor; /* NULL: this was the last page */
};
void rows_execution_page_done(struct rows_execution_page *page);

/* Newest first; sees what was put before. 0, or -1 BAD_CURSOR. */
int rows_execution_list(struct store *store, const struct rows_execution_filter *filter,
                        struct rows_execution_page *ret_page, struct err *err);

/*
 * At start: rows that a killed server left "queued" or "running" become "done" with fault "lost"
 * and finished_ms now_ms. 0 and how many.
 */
int rows_execution_lose(struct store *store, int64_t now_ms, size_t *ret_count, struct err *err);

/*
 * Deletes done rows created before before_ms, and the oldest done ones above keep_max (> 0) rows in
 * all.
 * At most 250 a call, so that the lock is never held for long; *ret_count tells how many.
 */
int rows_execution_expire(struct store *store, int64_t before_ms, uint64_t keep_max,
                          size_t *ret_count, struct err *err);

#endif
