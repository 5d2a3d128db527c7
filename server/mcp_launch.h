/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_launch: where the server of a bridge is, and how it is started. For one thread.
 */
#ifndef KERND_SERVER_MCP_LAUNCH_H
#define KERND_SERVER_MCP_LAUNCH_H

#include "lib/base/err.h"
#include "lib/base/strv.h"

struct mcp_launch {
    char *socket;
    char *log;         /* of a server that is started; NULL: none is */
    struct strv serve; /* its arguments */
};

/*
 * arguments: --socket PATH alone (then no server is started), or options of `kernd serve`. 0, or -1
 * BAD_VALUE with a remedy.
 */
int mcp_launch_open(struct mcp_launch *launch, int count, char *const *arguments, struct err *err);
void mcp_launch_close(struct mcp_launch *launch);

/*
 * A non-blocking connection. Where nobody listens a server is started, detached, its output in the
 * log, and waited for. -1 with err.
 */
int mcp_launch_connect(struct mcp_launch *launch, struct err *err);

#endif
