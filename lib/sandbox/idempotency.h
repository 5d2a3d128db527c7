/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idempotency: what was asked under a key, so that the same request is done once, also when the
 * server is killed in between. Keys live a day. Any thread but the event one.
 */
#ifndef KERND_SANDBOX_IDEMPOTENCY_H
#define KERND_SANDBOX_IDEMPOTENCY_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/sandbox/session.h"

struct sandbox;

#define IDEMPOTENCY_KEY_MAX 255

/* A key of a caller, and the request that came with it. Borrowed. */
struct idempotency {
    uint64_t caller;
    const char *key;  /* at most IDEMPOTENCY_KEY_MAX bytes */
    const char *hash; /* of the request, HASH_HEX_SIZE */
};

enum idempotency_state {
    IDEMPOTENCY_FRESH,     /* claimed just now: do it */
    IDEMPOTENCY_IN_FLIGHT, /* somebody is at it */
    IDEMPOTENCY_EXECUTION, /* this execution is, or was, the answer */
    IDEMPOTENCY_ANSWERED,
    IDEMPOTENCY_LOST, /* a server was killed while it was at it */
};

struct idempotency_found {
    enum idempotency_state state;
    char execution_id[SESSION_ID_SIZE];
    int status;   /* of ANSWERED */
    char *answer; /* of ANSWERED: as stored, may be NULL; idempotency_found_done */
};
void idempotency_found_done(struct idempotency_found *found);

/* On disk when it returns. 0, or -1 IDEMPOTENCY_MISMATCH (another request had the key), IO. */
int idempotency_claim(struct sandbox *sandbox, const struct idempotency *what,
                      struct idempotency_found *ret_found, struct err *err);

/* The answer will be this execution. On disk when it returns. */
int idempotency_bind(struct sandbox *sandbox, const struct idempotency *what,
                     const char *execution_id, struct err *err);

/* Stores the answer (NULL: none but that it was done). */
int idempotency_answer(struct sandbox *sandbox, const struct idempotency *what, int status,
                       const char *answer, struct err *err);

/* Nothing was done: the key may be used again. execution_id: only if still bound to that, or NULL.
 */
void idempotency_release(struct sandbox *sandbox, const struct idempotency *what,
                         const char *execution_id);

/* At start: what a killed server was at is lost. */
void idempotency_lose(struct sandbox *sandbox);

/* For the janitor. */
void idempotency_expire(struct sandbox *sandbox);

#endif
