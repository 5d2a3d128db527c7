/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_session: in which session a tool works: the one it names, or the caller's own, which is made
 * when it is needed. Any thread but the event one.
 *
 * The id of a client's own session follows from the caller and from what tells the client apart
 * (its Mcp-Session-Id, or the name it gives itself), so that it is found again after a restart.
 */
#ifndef KERND_API_MCP_SESSION_H
#define KERND_API_MCP_SESSION_H

#include "api/mcp_arguments.h"
#include "api/mcp_request.h"
#include "lib/sandbox/session.h"

#define MCP_SESSION_IDLE_S 86400.0 /* then the client's own session and its files are removed */

/* The id; whether the session is there is not asked. */
void mcp_session_name(const struct mcp_request *request, const struct mcp_arguments *arguments,
                      char out[static SESSION_ID_SIZE]);

/* Holds it (session.h), making the client's own where it is not there. 0, or -1. */
int mcp_session_hold(const struct mcp_request *request, const struct mcp_arguments *arguments,
                     struct session_hold **ret_hold, struct err *err);

#endif
