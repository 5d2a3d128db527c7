/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: look into messages for a bridge.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, json-c.
 */
#include "api/mcp_stdio.h"

#include <stdlib.h>
#include <string.h>

#include "api/json_in.h"
#include "api/mcp_message.h"
#include "api/mcp_version.h"
#include "lib/base/text.h"

#define HEADERS_MAX ((size_t)16384)

/* As it is where a header can hold it, else as base64 (revision 2026-07-28, custom headers). */
static void add_header(struct buf *out, const char *name, const char *value)
{
    bool plain = value[0] != '\0' && !text_starts_with(value, "=?") && value[0] != ' ' &&
                 value[strlen(value) - 1] != ' ';

    for (const char *at = value; *at != '\0'; at++) {
        plain = plain && *at >= ' ' && *at <= '~';
    }
    (void)buf_printf(out, "%s: ", name);
    if (plain) {
        (void)buf_append_text(out, value);
    } else {
        (void)buf_append_text(out, "=?base64?");
        (void)text_base64_encode(out, value, strlen(value));
        (void)buf_append_text(out, "?=");
    }
    (void)buf_append_text(out, "\r\n");
}

void mcp_stdio_read(const char *text, size_t size, struct mcp_stdio_line *ret_line)
{
    CLEANUP_JSON struct json_object *tree = json_in_value(text, size, NULL);
    struct mcp_message message;
    const char *version;
    const char *name;

    *ret_line =
        (struct mcp_stdio_line){ .unreadable = tree == NULL, .headers = BUF_INIT(HEADERS_MAX) };
    if (!json_object_is_type(tree, json_type_object)) {
        return;
    }
    mcp_message_read(tree, &message);
    version = mcp_message_text(message.meta, MCP_VERSION_META);
    name = mcp_message_text(message.params, "name");
    if (version != NULL) {
        add_header(&ret_line->headers, "MCP-Protocol-Version", version);
        add_header(&ret_line->headers, "Mcp-Method", message.method);
        if (name != NULL) {
            add_header(&ret_line->headers, "Mcp-Name", name);
        }
    }
    if (message.kind == MCP_MESSAGE_REQUEST) {
        ret_line->id = message.id;
        message.id = NULL;
    }
    mcp_message_done(&message);
}

void mcp_stdio_line_done(struct mcp_stdio_line *line)
{
    free(line->id);
    line->id = NULL;
    buf_done(&line->headers);
}

void mcp_stdio_error(struct buf *out, const char *id, bool unreadable, const char *message)
{
    struct mcp_message_fault fault;

    (void)mcp_message_refuse(&fault, 0, unreadable ? MCP_PARSE_ERROR : MCP_INTERNAL_ERROR, "%s",
                             message);
    mcp_message_error(out, id, &fault);
}
