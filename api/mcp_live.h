/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_live: the requests that are being worked on, to be found by a notification that cancels one.
 * Any thread.
 */
#ifndef KERND_API_MCP_LIVE_H
#define KERND_API_MCP_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct mcp_request;

struct mcp_live;                                /* one an api */
struct mcp_live *mcp_live_new(bool test_tools); /* with those of mcp_diagnostic.h */
void mcp_live_free(struct mcp_live *live);      /* NULL is fine */

/* The description of all tools: a JSON array without line breaks. Constant. */
const struct buf *mcp_live_tools(const struct mcp_live *live);

bool mcp_live_has_test_tools(const struct mcp_live *live);

/* Embedded in a request. */
struct mcp_live_entry {
    struct mcp_live_entry *next;
    struct mcp_live_entry **place; /* NULL: not in the list */
};

/* Ids are unique for one client alone: the caller and its Mcp-Session-Id ("" for none) are part. */
struct mcp_live_key {
    uint64_t caller;
    const char *client;
    const char *id; /* JSON text */
};

void mcp_live_add(struct mcp_live *live, struct mcp_request *request);
/* Nothing when it was not added. */
void mcp_live_remove(struct mcp_live *live, struct mcp_request *request);

/* Ends what matches. */
void mcp_live_cancel(struct mcp_live *live, const struct mcp_live_key *key);

#endif
