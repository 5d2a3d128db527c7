/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_progress: a reply that tells how far a request is, and then its answer, as an event stream.
 */
#ifndef KERND_API_MCP_PROGRESS_H
#define KERND_API_MCP_PROGRESS_H

#include "api/api.h"
#include "api/mcp_request.h"
#include "lib/base/buf.h"
#include "lib/sandbox/execution.h"

struct alarm;
struct mcp_progress;

/* For a request with a progress token. */
struct mcp_progress *mcp_progress_new(struct alarm *alarm, const struct mcp_request *request);

/* No stream was made of it. */
void mcp_progress_free(struct mcp_progress *progress);

/*
 * The stream, for a reply. gone is called once, on the alarm's thread, when the client has left or
 * has all.
 */
struct api_stream *mcp_progress_stream(struct mcp_progress *progress, void (*gone)(void *context),
                                       void *context);

/* The last lines that the execution writes are told from now on. Before mcp_progress_end. */
void mcp_progress_follow(struct mcp_progress *progress, const struct mcp_request *request,
                         const struct execution *execution);

/* The answer, which is copied. Nothing of this may be called afterwards but by the stream. */
void mcp_progress_end(struct mcp_progress *progress, const struct buf *answer);

#endif
