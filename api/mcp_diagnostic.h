/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_diagnostic: tools that a conformance suite of the protocol calls by their fixed names. They
 * are there only for a server with mcp_test_tools; mcp_diagnostics.json describes them.
 */
#ifndef KERND_API_MCP_DIAGNOSTIC_H
#define KERND_API_MCP_DIAGNOSTIC_H

#include <stdbool.h>

#include "api/mcp_request.h"

/*
 * Answers a tools/call, now or later, as handlers on the quick lane do. False: there is no such
 * tool, and the request was not touched.
 */
bool mcp_diagnostic_call(struct mcp_request *request, const char *name);

/*
 * One of them has an argument that clients must repeat in a header: does it say the same? Only for
 * messages of the revision without a handshake. 0, or -1 with the fault filled.
 */
int mcp_diagnostic_check(const struct api_call *call, const struct mcp_message *message,
                         struct mcp_message_fault *fault);

#endif
