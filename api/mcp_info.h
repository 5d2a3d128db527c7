/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_info: the tool session_info, which takes the arguments over. Any thread but the event one.
 */
#ifndef KERND_API_MCP_INFO_H
#define KERND_API_MCP_INFO_H

#include "api/mcp_arguments.h"
#include "api/mcp_request.h"

void mcp_info_session(struct mcp_request *request, struct mcp_arguments *arguments);

#endif
