/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem: what an error code means to an HTTP client (RFC 9457). Pure; any thread.
 */
#ifndef KERND_API_PROBLEM_H
#define KERND_API_PROBLEM_H

#include <stdbool.h>

#include "api/api.h"
#include "api/json_out.h"
#include "lib/base/err.h"

struct problem {
    int status;
    const char *code;   /* "bad_json": the stable name, also in type urn:kernd:error:<code> */
    const char *title;  /* the same for every problem of this code */
    bool retryable;     /* the same request may succeed later */
    int retry_after_s;  /* when err does not say it better; 0: no hint */
    const char *remedy; /* one line the caller can act on, when err has none of its own */
};

/* Static. ERR_NONE and codes that no client should see are "internal". */
const struct problem *problem_of(enum err_code code);

/*
 * Writes what an err says by itself into an object that is open: every member of a problem but
 * type, instance and requestId.
 */
void problem_write_members(struct json_out *json, const struct err *err);

/* See api_reply_problem. */
void problem_reply(struct api_reply *reply, const struct err *err, const char *target,
                   const char *request_id);

#endif
