/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_version: the revisions of the Model Context Protocol that are spoken here, and how a message
 * says which one it is of. Pure; any thread.
 *
 * Up to 2025-11-25 a client begins with `initialize` and then names the revision in a header, which
 * may be left out. From 2026-07-28 on there is no handshake: each request names the revision, in
 * its _meta and in the header, and headers repeat its method and name.
 */
#ifndef KERND_API_MCP_VERSION_H
#define KERND_API_MCP_VERSION_H

#include <stdbool.h>

#include "api/api.h"
#include "api/json_out.h"
#include "api/mcp_message.h"

#define MCP_VERSION_STATELESS "2026-07-28"
#define MCP_VERSION_META "io.modelcontextprotocol/protocolVersion"

/* What `initialize` is answered with: what was asked for where it can be, else the newest. */
const char *mcp_version_choose(const char *asked);

/*
 * May this message come with these headers? 0 and whether it is of the revision without a
 * handshake, or -1.
 */
int mcp_version_check(const struct api_call *call, const struct mcp_message *message,
                      bool *ret_stateless, struct mcp_message_fault *fault);

/* Does this header repeat what the body says? 0, or -1 with the fault filled. */
int mcp_version_check_header(const struct api_call *call, const char *name, const char *wanted,
                             struct mcp_message_fault *fault);

/* Were batches of messages part of the revision that the headers name (absent: unknown)? */
bool mcp_version_has_batches(const struct api_call *call);

#endif
