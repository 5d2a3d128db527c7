/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_cell: run_code in a warm interpreter, which is opened when it is needed, and reset_kernel.
 * Both take the arguments over. Any thread but the event one; answers on any.
 */
#ifndef KERND_API_MCP_CELL_H
#define KERND_API_MCP_CELL_H

#include "api/mcp_arguments.h"
#include "api/mcp_request.h"

void mcp_cell_run(struct mcp_request *request, struct mcp_arguments *arguments);
void mcp_cell_reset(struct mcp_request *request, struct mcp_arguments *arguments);

#endif
