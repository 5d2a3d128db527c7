/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_run: the tools run_code and run_command. Both take the arguments over. Handlers on the quick
 * lane; answers on the thread that ended the run.
 */
#ifndef KERND_API_MCP_RUN_H
#define KERND_API_MCP_RUN_H

#include "api/mcp_arguments.h"
#include "api/mcp_request.h"
#include "lib/sandbox/execution.h"

void mcp_run_code(struct mcp_request *request, struct mcp_arguments *arguments);
void mcp_run_command(struct mcp_request *request, struct mcp_arguments *arguments);

/* Answers with the result of an execution, whose reference is taken over. note: see mcp_output.h.
 */
void mcp_run_follow(struct mcp_request *request, struct execution *execution, const char *note);

/* May the caller have what this asks for (rights.h)? 0 or -1. */
int mcp_run_check(const struct mcp_request *request, const struct run_request *run,
                  struct err *err);

#endif
