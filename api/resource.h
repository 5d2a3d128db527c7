/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource: what the handlers of all resources share.
 */
#ifndef KERND_API_RESOURCE_H
#define KERND_API_RESOURCE_H

#include <stdint.h>

#include "api/api.h"
#include "api/json_out.h"
#include "api/run_in.h"
#include "lib/sandbox/session.h"

struct alarm;
struct mcp_live;
struct traffic;

/* The resources over one sandbox; made by api_new. */
struct api {
    struct sandbox *sandbox; /* borrowed */
    struct alarm *alarm;     /* long polls, silence of streams */
    struct mcp_live *mcp;    /* requests of the Model Context Protocol under way */
    struct traffic *traffic; /* what went over HTTP, for /metrics */
    int64_t started_wall_ms;
};

/* On whose behalf the call is. */
struct session_actor resource_actor(const struct api_call *call);

/* What bodies of this call are read over, without a session. */
struct run_in_base resource_base(const struct api_call *call);

#define RESOURCE_ID_SIZE 65

/*
 * Copies what stands at "{name}" in the path. 0, or -1 with not_found when it can't be an id
 * (id_valid), so that nothing is there under it.
 */
int resource_id(const struct api_call *call, const char *name, enum err_code not_found,
                char out[static RESOURCE_ID_SIZE], struct err *err);

/* Answers with the problem that err stands for, and finishes the call. */
void resource_fail(struct api_call *call, const struct err *err);

/* Starts a JSON reply; the returned writer is filled by the caller. */
void resource_reply(struct api_call *call, int status, struct json_out *ret_json);

/* Ends what resource_reply started (or says 500 if it did not fit) and finishes the call. */
void resource_finish(struct api_call *call, const struct json_out *json);

/* 0, or -1 NOT_ACCEPTABLE when the client takes no JSON. */
int resource_accepts_json(const struct api_call *call, struct err *err);

/* 204: done, and nothing to say. Finishes the call. */
void resource_finish_empty(struct api_call *call);

/* 0, or -1 when the query has any parameter. */
int resource_no_query(const struct api_call *call, struct err *err);

#endif
