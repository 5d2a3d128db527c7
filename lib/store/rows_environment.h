/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_environment: the table of environments (what sessions start from), ids by content hash.
 */
#ifndef KERND_STORE_ROWS_ENVIRONMENT_H
#define KERND_STORE_ROWS_ENVIRONMENT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/store/store.h"

struct rows_environment {
    char id[STORE_ID_SIZE];
    char name[STORE_ID_SIZE];         /* "": none; else no other environment has it */
    char state[16];                   /* "building", "ready", "failed" */
    char *spec;                       /* text of the layer above: engine, image, setup, preload */
    char execution_id[STORE_ID_SIZE]; /* whose journal is the build log; "": none */
    uint64_t caller;
    uint64_t bytes; /* on disk */
    int64_t created_ms;
    int64_t used_ms;
};
void rows_environment_done(struct rows_environment *row);

/* 0, or -1 CONFLICT when the id or the name is taken. */
int rows_environment_insert(struct store *store, const struct rows_environment *row,
                            struct err *err);

/* name, state, execution_id, bytes, used_ms. 0, or -1 ENVIRONMENT_NOT_FOUND, CONFLICT (name). */
int rows_environment_update(struct store *store, const struct rows_environment *row,
                            struct err *err);

/* By id, or by name. The caller calls rows_environment_done. 0, or -1 ENVIRONMENT_NOT_FOUND. */
int rows_environment_get(struct store *store, const char *id_or_name,
                         struct rows_environment *ret_row, struct err *err);

/* 0 also when it is not there. */
int rows_environment_delete(struct store *store, const char *id, struct err *err);

struct rows_environment_page {
    struct rows_environment *rows;
    size_t count;
    char *next_cursor; /* NULL: this was the last page */
};
void rows_environment_page_done(struct rows_environment_page *page);

/* Newest first; cursor NULL: from the start. 0, or -1 BAD_CURSOR. */
int rows_environment_list(struct store *store, size_t limit, const char *cursor,
                          struct rows_environment_page *ret_page, struct err *err);

/* At start: what was "building" is "failed". */
int rows_environment_lose(struct store *store, struct err *err);

#endif
