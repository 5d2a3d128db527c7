/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: tell the eras of the protocol apart, and hold each message to the rules of its own.
 * Owns: the list of revisions.
 * Threads: any (pure functions).
 * May include: lib/base, json-c.
 */
#include "api/mcp_version.h"

#include <stdio.h>
#include <string.h>

#include "api/json_out.h"
#include "lib/base/buf.h"
#include "lib/base/text.h"

#define BASE64_BEGIN "=?base64?"
#define BASE64_END "?="
#define NAME_MAX_SIZE ((size_t)4096)

/* With a handshake, newest first. The oldest two could send several messages at once. */
static const char *const shaken[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };
#define SHAKEN_COUNT (sizeof(shaken) / sizeof(shaken[0]))
#define FIRST_WITH_BATCHES 2

static size_t find_shaken(const char *version)
{
    size_t at = 0;

    while (at < SHAKEN_COUNT && !text_equal(shaken[at], version)) {
        at++;
    }
    return at;
}

const char *mcp_version_choose(const char *asked)
{
    size_t at = find_shaken(asked);

    return shaken[at < SHAKEN_COUNT ? at : 0];
}

bool mcp_version_has_batches(const struct api_call *call)
{
    const char *named = api_call_header(call, "MCP-Protocol-Version");
    size_t at = find_shaken(named);

    return named == NULL || (at >= FIRST_WITH_BATCHES && at < SHAKEN_COUNT);
}

/* ---- headers that repeat what is in the body ---- */

/* Blanks around a value are no part of it; "=?base64?...?=" stands for bytes no header can hold. */
static bool header_says(const char *value, const char *wanted)
{
    CLEANUP_BUF struct buf bytes = BUF_INIT(NAME_MAX_SIZE);
    size_t size;

    value += strspn(value, " \t");
    size = strlen(value);
    while (size > 0 && strchr(" \t", value[size - 1]) != NULL) {
        size--;
    }
    if (text_starts_with(value, BASE64_BEGIN) && size >= strlen(BASE64_BEGIN BASE64_END) &&
        memcmp(value + size - strlen(BASE64_END), BASE64_END, strlen(BASE64_END)) == 0) {
        if (text_base64_decode(&bytes, value + strlen(BASE64_BEGIN),
                               size - strlen(BASE64_BEGIN BASE64_END)) < 0) {
            return false;
        }
        value = bytes.data == NULL ? "" : bytes.data;
        size = bytes.size;
    }
    return size == strlen(wanted) && memcmp(value, wanted, size) == 0;
}

int mcp_version_check_header(const struct api_call *call, const char *name, const char *wanted,
                             struct mcp_message_fault *fault)
{
    const char *value = api_call_header(call, name);

    if (value == NULL) {
        return mcp_message_refuse(fault, 400, MCP_HEADER_MISMATCH, "the header %s is missing",
                                  name);
    }
    if (!header_says(value, wanted)) {
        return mcp_message_refuse(fault, 400, MCP_HEADER_MISMATCH,
                                  "the header %s says something else than the body", name);
    }
    return 0;
}

/* ---- the era without a handshake ---- */

static int refuse_version(const char *asked, struct mcp_message_fault *fault)
{
    struct buf data = BUF_INIT(sizeof(fault->data) - 1);
    struct json_out json;

    (void)mcp_message_refuse(fault, 400, MCP_UNSUPPORTED_VERSION,
                             "this revision of the protocol is not spoken here");
    json_out_init(&json, &data);
    json_out_open(&json, '{');
    json_out_key(&json, "supported");
    json_out_open(&json, '[');
    json_out_string(&json, MCP_VERSION_STATELESS);
    json_out_close(&json, ']');
    json_out_key(&json, "requested");
    json_out_text(&json, asked, strnlen(asked, 64));
    json_out_close(&json, '}');
    (void)snprintf(fault->data, sizeof(fault->data), "%s", data.data);
    buf_done(&data);
    return -1;
}

static int check_stateless(const struct api_call *call, const struct mcp_message *message,
                           struct mcp_message_fault *fault)
{
    const char *version = mcp_message_text(message->meta, MCP_VERSION_META);
    struct json_object *capabilities = NULL;
    const char *name = mcp_message_text(message->params, "name");

    if (version == NULL ||
        !json_object_object_get_ex(message->meta, "io.modelcontextprotocol/clientCapabilities",
                                   &capabilities) ||
        !json_object_is_type(capabilities, json_type_object)) {
        return mcp_message_refuse(fault, 400, MCP_INVALID_PARAMS,
                                  "params._meta needs " MCP_VERSION_META
                                  " (a string) and io.modelcontextprotocol/clientCapabilities (an "
                                  "object)");
    }
    if (mcp_version_check_header(call, "MCP-Protocol-Version", version, fault) < 0 ||
        mcp_version_check_header(call, "Mcp-Method", message->method, fault) < 0) {
        return -1;
    }
    if (text_equal(message->method, "tools/call") && name != NULL &&
        mcp_version_check_header(call, "Mcp-Name", name, fault) < 0) {
        return -1;
    }
    return text_equal(version, MCP_VERSION_STATELESS) ? 0 : refuse_version(version, fault);
}

/* ---- both ---- */

int mcp_version_check(const struct api_call *call, const struct mcp_message *message,
                      bool *ret_stateless, struct mcp_message_fault *fault)
{
    const char *header = api_call_header(call, "MCP-Protocol-Version");
    const bool has_meta =
        message->meta != NULL && json_object_object_get_ex(message->meta, MCP_VERSION_META, NULL);
    const bool known = header == NULL || find_shaken(header) < SHAKEN_COUNT;

    *ret_stateless = has_meta || (!known && !text_equal(message->method, "initialize"));
    if (!*ret_stateless) {
        return 0;
    }
    if (message->kind == MCP_MESSAGE_REQUEST) {
        return check_stateless(call, message, fault);
    }
    if (!known && !text_equal(header, MCP_VERSION_STATELESS)) {
        return mcp_message_refuse(fault, 400, MCP_INVALID_REQUEST,
                                  "the header MCP-Protocol-Version names no revision that is "
                                  "spoken here");
    }
    return 0;
}
