/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource: what the handlers of all resources share.
 */
#ifndef KERND_API_RESOURCE_H
#define KERND_API_RESOURCE_H

#include <stdint.h>

#include "api/api.h"
#include "api/json_out.h"

/* The resources over one sandbox; made by api_new. */
struct api {
    struct sandbox *sandbox; /* borrowed */
    int64_t started_wall_ms;
};

/* Answers with the problem that err stands for, and finishes the call. */
void resource_fail(struct api_call *call, const struct err *err);

/* Starts a JSON reply; the returned writer is filled by the caller. */
void resource_reply(struct api_call *call, int status, struct json_out *ret_json);

/* Ends what resource_reply started (or says 500 if it did not fit) and finishes the call. */
void resource_finish(struct api_call *call, const struct json_out *json);

/* 0, or -1 NOT_ACCEPTABLE when the client takes no JSON. */
int resource_accepts_json(const struct api_call *call, struct err *err);

/* 0, or -1 when the query has any parameter. */
int resource_no_query(const struct api_call *call, struct err *err);

#endif
