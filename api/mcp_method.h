/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_method: the methods of the Model Context Protocol. Handlers on the quick lane.
 */
#ifndef KERND_API_MCP_METHOD_H
#define KERND_API_MCP_METHOD_H

#include "api/mcp_request.h"

/* Answers a request, now or later: it must not be touched afterwards. */
void mcp_method_answer(struct mcp_request *request);

/* A notification, which nobody answers. client: the Mcp-Session-Id, "" for none. */
void mcp_method_notice(struct api_call *call, const char *client,
                       const struct mcp_message *message);

#endif
