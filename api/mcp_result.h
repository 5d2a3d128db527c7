/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_result: what a tool gives back: parts for the model to read, and the same for programs. For
 * one thread at a time.
 */
#ifndef KERND_API_MCP_RESULT_H
#define KERND_API_MCP_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "api/json_out.h"
#include "api/mcp_request.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

struct mcp_result {
    bool failed;           /* the model should see that it went wrong */
    struct buf content;    /* JSON of the parts */
    struct buf structured; /* the object, filled through json */
    struct json_out parts; /* writes into content */
    struct json_out json;  /* writes into structured; the object is open */
};

/* The object begins with "ok". */
void mcp_result_init(struct mcp_result *result, bool ok);

void mcp_result_text(struct mcp_result *result, const void *data, size_t size);
void mcp_result_image(struct mcp_result *result, const char *mime, const void *base64, size_t size);

/* Answers the request with it; frees what is in it. */
void mcp_result_send(struct mcp_result *result, struct mcp_request *request);

/* Answers with what went wrong, in the form of all results, for the model to read. */
void mcp_result_fail(struct mcp_request *request, const struct err *err);

#endif
