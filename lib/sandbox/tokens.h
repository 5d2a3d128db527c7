/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens: further tokens that the user gave away, narrow ones and full ones. Any thread; a look-up
 * only takes a short lock (it happens on the event thread), everything else also the store's.
 *
 * Each has a caller key of its own, which owns what is made with it: sessions, executions,
 * snapshots. Revoking a token leaves those to the user.
 */
#ifndef KERND_SANDBOX_TOKENS_H
#define KERND_SANDBOX_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct sandbox;
struct store;
struct tokens;

#define TOKENS_ID_SIZE 65
#define TOKENS_NAME_MAX 100 /* bytes */
#define TOKENS_COUNT_MAX 1000
#define TOKENS_TEXT_SIZE 71 /* "kernd_", 64 characters of [0-9a-f], a NUL */

struct tokens_view {
    char id[TOKENS_ID_SIZE];
    char name[TOKENS_NAME_MAX + 1]; /* "": none */
    bool full;                      /* else of scope "run" */
    uint64_t caller;                /* odd, and not 1 */
    int64_t created_ms;
    int64_t expires_ms; /* 0: never */
};

/* Reads all of them. NULL with err. The store is borrowed. */
struct tokens *tokens_open(struct store *store, struct err *err);
void tokens_close(struct tokens *tokens); /* NULL is fine */

struct tokens_wish {
    bool full;
    const char *name;  /* NULL: none */
    double lifetime_s; /* 0: never expires */
};

/*
 * Makes one. ret_text is shown once: only its hash is
 * kept. 0, or -1 BAD_VALUE (a name that is empty, too long or has control characters), CONFLICT
 * (there are TOKENS_COUNT_MAX).
 */
int tokens_make(struct sandbox *sandbox, const struct tokens_wish *wish,
                struct tokens_view *ret_view, char ret_text[static TOKENS_TEXT_SIZE],
                struct err *err);

/* All that are kept, expired ones too, the oldest first; the caller frees. */
struct tokens_view *tokens_list(struct sandbox *sandbox, size_t *ret_count);

/* From the next request on nobody gets in with it. 0, or -1 TOKEN_NOT_FOUND. */
int tokens_revoke(struct sandbox *sandbox, const char *id, struct err *err);

/* Is text a token that is neither revoked nor expired? */
bool tokens_find(struct sandbox *sandbox, const char *text, struct tokens_view *ret_view);

#endif
