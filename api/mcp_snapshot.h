/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_snapshot: the tools snapshot and restore. Both take the arguments over. Handlers on the quick
 * lane; answers on the lane of archives.
 */
#ifndef KERND_API_MCP_SNAPSHOT_H
#define KERND_API_MCP_SNAPSHOT_H

#include "api/mcp_arguments.h"
#include "api/mcp_request.h"

void mcp_snapshot_make(struct mcp_request *request, struct mcp_arguments *arguments);
void mcp_snapshot_restore(struct mcp_request *request, struct mcp_arguments *arguments);

#endif
