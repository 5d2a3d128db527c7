/* SPDX-License-Identifier: Apache-2.0 */
/*
 * once: Idempotency-Key: a request that makes something is done once, however often it is sent.
 *
 * The key is claimed before any work, and bound to the execution before its box starts. The same
 * request again gets the stored answer; while the first one is under way, 409. Any thread but the
 * event one.
 */
#ifndef KERND_API_ONCE_H
#define KERND_API_ONCE_H

#include <stdbool.h>

#include "api/api.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/sandbox/run.h"

/* Before the handler, on routes that make something. False: the call was answered. */
bool once_begin(struct api_call *call);

/*
 * The answer will be the execution of this request, which gets an id if it has none. 0, or -1 IO.
 * Nothing without a key.
 */
int once_bind(struct api_call *call, struct run_request *request, struct err *err);

/* The same for an execution that is there already. */
void once_bind_to(struct api_call *call, const char *execution_id);

/* It was not taken: the key is free again after this answer. */
void once_unbind(struct api_call *call);

/*
 * For a request that is made of executions of its own: the id of the index-th, the same each time.
 * Nothing without a key.
 */
void once_name_part(const struct api_call *call, size_t index, struct run_request *request);

/* In api_call_finish: stores the answer. */
void once_end(struct api_call *call);

/* SHA-256 of method, path, query and body: what makes two requests the same. */
void once_fingerprint(const struct api_call *call, char out[static HASH_HEX_SIZE]);

/* ---- parts of it, pure ---- */

/*
 * The value of the header as a key: printable ASCII, at most 255 characters, without the quotes
 * that a structured field has. 0, or -1 BAD_HEADER.
 */
int once_parse_key(const char *value, char out[static 256], struct err *err);

/* An answer as one text, and back: Content-Type and Location, then the body. */
void once_pack(const struct api_reply *reply, struct buf *out);
void once_unpack(const char *text, struct api_reply *reply);

#endif
