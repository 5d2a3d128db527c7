/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_kernel: the table of kernels, so that one that is gone can still say why.
 */
#ifndef KERND_STORE_ROWS_KERNEL_H
#define KERND_STORE_ROWS_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/store/store.h"

struct rows_kernel {
    char session_id[STORE_ID_SIZE];
    char id[STORE_ID_SIZE]; /* one of its session's */
    char language[16];
    char state[16];
    char *reason;  /* why it is dead, NULL: it is not */
    char *options; /* text of the layer above */
    uint64_t cells;
    int64_t created_ms;
    int64_t ended_ms; /* 0: it lives */
};
void rows_kernel_done(struct rows_kernel *row);

/* A new row. 0, or -1 KERNEL_EXISTS, SESSION_NOT_FOUND. */
int rows_kernel_insert(struct store *store, const struct rows_kernel *row, struct err *err);

/* state, reason, cells and ended_ms. 0, or -1 KERNEL_NOT_FOUND. */
int rows_kernel_update(struct store *store, const struct rows_kernel *row, struct err *err);

/* The caller calls rows_kernel_done. 0, or -1 KERNEL_NOT_FOUND. */
int rows_kernel_get(struct store *store, const char *session_id, const char *id,
                    struct rows_kernel *ret_row, struct err *err);

struct rows_kernel_list {
    struct rows_kernel *rows;
    size_t count;
};
void rows_kernel_list_done(struct rows_kernel_list *list);

/* All of a session, the oldest first, the latest 1000 at most. */
int rows_kernel_list(struct store *store, const char *session_id, struct rows_kernel_list *ret_list,
                     struct err *err);

/* 0 also when it is not there. */
int rows_kernel_delete(struct store *store, const char *session_id, const char *id,
                       struct err *err);

/* At start: no kernel outlives its server. Living ones become "dead" with this reason. */
int rows_kernel_lose(struct store *store, const char *reason, int64_t now_ms, struct err *err);

#endif
