/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp: the Model Context Protocol over Streamable HTTP: one path for all revisions.
 *
 * A POST brings one message (in old revisions: or several); the answer is JSON, or an event stream
 * where the client asked for progress. Nothing is kept between requests but what is under way:
 * `initialize` gives a random Mcp-Session-Id, which only tells apart clients of one caller.
 */
#ifndef KERND_API_MCP_H
#define KERND_API_MCP_H

#include "api/api.h"

/* The handler of POST /mcp. */
void mcp_post(struct api_call *call);

#endif
