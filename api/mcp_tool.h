/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_tool: which tool a call names. mcp_tools.json describes them to clients.
 */
#ifndef KERND_API_MCP_TOOL_H
#define KERND_API_MCP_TOOL_H

#include "api/mcp_request.h"

/* Answers a tools/call, now or later. Handlers on the quick lane. */
void mcp_tool_call(struct mcp_request *request);

#endif
