/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_request: one request of the Model Context Protocol. For the mcp rooms.
 */
#ifndef KERND_API_MCP_REQUEST_H
#define KERND_API_MCP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "api/api.h"
#include "api/mcp_live.h"
#include "api/mcp_message.h"
#include "api/mcp_workspace.h"
#include "lib/base/buf.h"
#include "lib/sandbox/execution.h"
#include "lib/sandbox/session.h"

struct mcp_exchange;
struct mcp_progress;

#define MCP_REQUEST_CLIENT_SIZE 65

/* Lives until mcp_exchange_done; constant but for what is marked. */
struct mcp_request {
    struct api *api;
    struct session_actor actor;
    enum api_scope scope;
    char client[MCP_REQUEST_CLIENT_SIZE]; /* its Mcp-Session-Id, "": none */
    struct mcp_workspace workspace;       /* of its own session */
    struct mcp_message message;           /* its tree is the exchange's */
    bool stateless;                       /* of the revision without a handshake */
    char *progress_token;                 /* JSON text; NULL: no progress is wanted */
    struct mcp_exchange *exchange;
    struct buf answer; /* whoever works on the request writes it */
    int status;        /* of HTTP, when it is the only one */
    struct mcp_live_entry live;
    /* Under the exchange's lock: */
    struct execution *execution; /* what runs for it: one reference */
    struct cancel *work;         /* what else is done for it: the token of that; borrowed */
    bool cancelled;
};

#endif
