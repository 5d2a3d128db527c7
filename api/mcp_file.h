/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_file: the tool read_file, and reading for other tools. Any thread but the event one.
 */
#ifndef KERND_API_MCP_FILE_H
#define KERND_API_MCP_FILE_H

#include <stdint.h>

#include "api/mcp_arguments.h"
#include "api/mcp_request.h"
#include "lib/base/buf.h"
#include "lib/sandbox/session_files.h"

/* Takes the arguments over. */
void mcp_file_read(struct mcp_request *request, struct mcp_arguments *arguments);

/*
 * The bytes of a file, no more than out's maximum. 0, or -1 FILE_NOT_FOUND ..., BODY_TOO_LARGE;
 * then ret_entry tells its size.
 */
int mcp_file_load(const struct session_hold *hold, const struct mcp_arguments_text *path,
                  struct buf *out, struct entry *ret_entry, struct err *err);

#endif
