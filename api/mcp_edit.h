/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_edit: the tools write_file and edit_file. Both take the arguments over. Any thread but the
 * event one.
 */
#ifndef KERND_API_MCP_EDIT_H
#define KERND_API_MCP_EDIT_H

#include "api/mcp_arguments.h"
#include "api/mcp_request.h"

void mcp_edit_write(struct mcp_request *request, struct mcp_arguments *arguments);
void mcp_edit_replace(struct mcp_request *request, struct mcp_arguments *arguments);

#endif
