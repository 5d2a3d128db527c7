/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_message: the frames of the Model Context Protocol: JSON-RPC 2.0 messages. Pure; any thread.
 */
#ifndef KERND_API_MCP_MESSAGE_H
#define KERND_API_MCP_MESSAGE_H

#include <json.h>
#include <stddef.h>

#include "lib/base/buf.h"

/* Error codes of JSON-RPC 2.0, and those that the protocol's revision 2026-07-28 adds. */
enum mcp_message_code {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_METHOD_NOT_FOUND = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL_ERROR = -32603,
    MCP_HEADER_MISMATCH = -32020,
    MCP_MISSING_CAPABILITY = -32021,
    MCP_UNSUPPORTED_VERSION = -32022,
};

enum mcp_message_kind {
    MCP_MESSAGE_REQUEST,
    MCP_MESSAGE_NOTIFICATION,
    MCP_MESSAGE_RESPONSE, /* to a request that this server never made */
    MCP_MESSAGE_INVALID,
};

/* Borrows the tree that it was read from, but for the id. */
struct mcp_message {
    enum mcp_message_kind kind;
    const char *method;         /* "" where there is none */
    struct json_object *params; /* an object, or NULL: none */
    struct json_object *meta;   /* its "_meta", an object, or NULL */
    char *id;                   /* as JSON text; NULL: none */
};

/* A message that is none becomes MCP_MESSAGE_INVALID. mcp_message_done in any case. */
void mcp_message_read(struct json_object *value, struct mcp_message *ret_message);
void mcp_message_done(struct mcp_message *message);

/* A string member of an object; NULL: absent, another type, or no object. */
const char *mcp_message_text(struct json_object *object, const char *name);

/* The JSON text of an id or progress token: a string or a whole number. NULL for anything else. */
char *mcp_message_id(struct json_object *value);

/* Why a request is refused by the protocol itself. */
struct mcp_message_fault {
    int status; /* of HTTP */
    enum mcp_message_code code;
    char message[240];
    char data[512]; /* a JSON value, "": none */
};

/* Sets all but data. Returns -1. */
int mcp_message_refuse(struct mcp_message_fault *fault, int status, enum mcp_message_code code,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Writes a whole error response. id NULL: it is not known. */
void mcp_message_error(struct buf *out, const char *id, const struct mcp_message_fault *fault);

/* Around the JSON of a result. */
void mcp_message_begin(struct buf *out, const char *id);
void mcp_message_end(struct buf *out);

#endif
