/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_workspace: a directory of the host that a client's configuration gives to its own session. No
 * tool has an argument for that: it comes with a header, from the user alone. Pure; any thread.
 */
#ifndef KERND_API_MCP_WORKSPACE_H
#define KERND_API_MCP_WORKSPACE_H

#include <stdbool.h>

#include "api/api.h"
#include "lib/base/buf.h"

struct mcp_workspace {
    char *path; /* absolute, NULL: none was given */
    bool readonly;
};

/*
 * Reads "Kernd-Workspace: PATH" or "PATH:ro", with percent-encoding (mcp_workspace_write). 0, or -1
 * FORBIDDEN (for a token of scope "run"), BAD_HEADER. mcp_workspace_done in any case.
 */
int mcp_workspace_read(const struct api_call *call, struct mcp_workspace *ret_workspace,
                       struct err *err);
void mcp_workspace_done(struct mcp_workspace *workspace);

/* Appends the header as a line, with its line break. */
void mcp_workspace_write(struct buf *out, const struct mcp_workspace *workspace);

#endif
