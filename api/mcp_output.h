/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_output: the result of an execution as a model should see it: text with bounds, each image
 * once. Pure; any thread.
 */
#ifndef KERND_API_MCP_OUTPUT_H
#define KERND_API_MCP_OUTPUT_H

#include "api/mcp_result.h"
#include "lib/sandbox/execution.h"
#include "lib/sandbox/run.h"

/*
 * Fills a result that is not initialised. note: a line of its own for the model, "": none.
 */
void mcp_output_fill(struct mcp_result *result, const struct execution *execution,
                     const struct run_result *run, const char *note);

/* Appends text, without its middle where it is above max bytes; never half a character. */
void mcp_output_clip(struct buf *out, const char *text, size_t size, size_t max);

#endif
