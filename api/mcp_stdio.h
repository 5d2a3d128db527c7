/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_stdio: what a bridge has to know of the messages that it carries from lines to POST /mcp.
 * Pure; any thread.
 */
#ifndef KERND_API_MCP_STDIO_H
#define KERND_API_MCP_STDIO_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"

struct mcp_stdio_line {
    char *id;           /* JSON text; NULL: nobody waits for an answer */
    bool unreadable;    /* not JSON: to be answered with an error */
    struct buf headers; /* lines that end in CRLF, which the revision of the message wants */
};

/* mcp_stdio_line_done frees. */
void mcp_stdio_read(const char *text, size_t size, struct mcp_stdio_line *ret_line);
void mcp_stdio_line_done(struct mcp_stdio_line *line);

/* Appends an error response without a line break. id NULL: it is not known. */
void mcp_stdio_error(struct buf *out, const char *id, bool unreadable, const char *message);

#endif
