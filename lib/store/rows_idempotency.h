/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_idempotency: the table of idempotency keys: what a caller asked under a key, and the answer.
 *
 * A key is claimed before any work starts and on disk when the claim returns, so that after a crash
 * the same request finds its claim (status 0) and is never run a second time.
 */
#ifndef KERND_STORE_ROWS_IDEMPOTENCY_H
#define KERND_STORE_ROWS_IDEMPOTENCY_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/store/store.h"

#define ROWS_IDEMPOTENCY_KEY_MAX 255
#define ROWS_IDEMPOTENCY_HASH_SIZE 65
#define ROWS_IDEMPOTENCY_LOST (-1) /* status: see rows_idempotency_lose */

struct rows_idempotency {
    uint64_t caller; /* keys of different callers never meet */
    char key[ROWS_IDEMPOTENCY_KEY_MAX + 1];
    char request_hash[ROWS_IDEMPOTENCY_HASH_SIZE]; /* of method, path and body */
    char execution_id[STORE_ID_SIZE];              /* "": none (yet) */
    int status;                                    /* of the stored answer; 0: in flight */
    char *answer;                                  /* text of the layer above, NULL: none */
    int64_t created_ms;
    int64_t expires_ms;
};
void rows_idempotency_done(struct rows_idempotency *row);

/*
 * Claims row->key for row->caller. 1: it is the caller's now. 0: there was one, not expired at
 * row->created_ms, copied to *ret_there (the caller calls rows_idempotency_done). -1: err.
 */
int rows_idempotency_claim(struct store *store, const struct rows_idempotency *row,
                           struct rows_idempotency *ret_there, struct err *err);

/* Names the execution that works on it, so that a retry can be sent there. */
int rows_idempotency_start(struct store *store, uint64_t caller, const char *key,
                           const char *execution_id, struct err *err);

/* Stores the answer. */
int rows_idempotency_finish(struct store *store, const struct rows_idempotency *row,
                            struct err *err);

/* Gives a claim up: nothing was done under it (the queue was full, the request was refused). */
int rows_idempotency_release(struct store *store, uint64_t caller, const char *key,
                             struct err *err);

/* Gives up a claim that waits for this execution, unless somebody did already. */
int rows_idempotency_unbind(struct store *store, uint64_t caller, const char *key,
                            const char *execution_id, struct err *err);

/* At start: claims without an answer and without an execution's row get the status LOST. */
int rows_idempotency_lose(struct store *store, struct err *err);

/* Deletes what expired. */
int rows_idempotency_expire(struct store *store, int64_t now_ms, struct err *err);

#endif
