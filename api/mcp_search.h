/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_search: the tools list_files and search_files. Both take the arguments over. Handlers on the
 * quick lane; a search is answered on a run thread.
 */
#ifndef KERND_API_MCP_SEARCH_H
#define KERND_API_MCP_SEARCH_H

#include "api/mcp_arguments.h"
#include "api/mcp_request.h"

void mcp_search_list(struct mcp_request *request, struct mcp_arguments *arguments);
void mcp_search_text(struct mcp_request *request, struct mcp_arguments *arguments);

#endif
