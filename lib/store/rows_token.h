/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_token: the table of further tokens. A row holds the hash of a token, never the token.
 */
#ifndef KERND_STORE_ROWS_TOKEN_H
#define KERND_STORE_ROWS_TOKEN_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/store/store.h"

#define ROWS_TOKEN_NAME_SIZE 101

struct rows_token {
    char id[STORE_ID_SIZE];
    char name[ROWS_TOKEN_NAME_SIZE]; /* "": none */
    char scope[8];
    char sha256[65]; /* of the token's text, hex */
    uint64_t caller; /* owns what is made with it */
    int64_t created_ms;
    int64_t expires_ms; /* 0: never */
};

int rows_token_insert(struct store *store, const struct rows_token *row, struct err *err);

/* 0, or -1 TOKEN_NOT_FOUND. */
int rows_token_delete(struct store *store, const char *id, struct err *err);

/* Every row, the oldest first, within the store's lock: visit must not call the store. */
int rows_token_each(struct store *store, void (*visit)(void *context, const struct rows_token *row),
                    void *context, struct err *err);

#endif
