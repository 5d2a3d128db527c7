/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read and write JSON-RPC messages.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, json-c.
 */
#include "api/mcp_message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content_in.h"
#include "api/json_out.h"
#include "lib/base/alloc.h"
#include "lib/base/text.h"

#define ID_MAX ((size_t)4096)

const char *mcp_message_text(struct json_object *object, const char *name)
{
    struct json_object *value = NULL;

    if (object == NULL || !json_object_object_get_ex(object, name, &value) ||
        !json_object_is_type(value, json_type_string) || content_in_has_nul(value)) {
        return NULL;
    }
    return json_object_get_string(value);
}

char *mcp_message_id(struct json_object *value)
{
    struct buf text = BUF_INIT(ID_MAX);
    struct json_out json;

    json_out_init(&json, &text);
    if (json_object_is_type(value, json_type_string)) {
        json_out_text(&json, json_object_get_string(value),
                      (size_t)json_object_get_string_len(value));
    } else if (json_object_is_type(value, json_type_int)) {
        json_out_whole(&json, json_object_get_int64(value));
    }
    if (text.size == 0 || json_out_failed(&json)) {
        buf_done(&text);
        return NULL;
    }
    return buf_take(&text, NULL);
}

/* An object, or nothing. False: something else is there. */
static bool read_object(struct json_object *from, const char *name, struct json_object **ret)
{
    *ret = NULL;
    return from == NULL || !json_object_object_get_ex(from, name, ret) ||
           json_object_is_type(*ret, json_type_object);
}

static enum mcp_message_kind kind_of(struct json_object *value, const struct mcp_message *message,
                                     bool has_id)
{
    if (message->method[0] != '\0') {
        return !has_id               ? MCP_MESSAGE_NOTIFICATION
               : message->id != NULL ? MCP_MESSAGE_REQUEST
                                     : MCP_MESSAGE_INVALID;
    }
    return has_id && (json_object_object_get_ex(value, "result", NULL) ||
                      json_object_object_get_ex(value, "error", NULL))
               ? MCP_MESSAGE_RESPONSE
               : MCP_MESSAGE_INVALID;
}

void mcp_message_read(struct json_object *value, struct mcp_message *ret_message)
{
    struct json_object *id = NULL;
    const char *version;
    const char *method;
    bool has_id;

    *ret_message = (struct mcp_message){ .kind = MCP_MESSAGE_INVALID, .method = "" };
    if (!json_object_is_type(value, json_type_object)) {
        return;
    }
    has_id = json_object_object_get_ex(value, "id", &id);
    ret_message->id = mcp_message_id(id);
    version = mcp_message_text(value, "jsonrpc");
    method = mcp_message_text(value, "method");
    if (!text_equal(version, "2.0") || !read_object(value, "params", &ret_message->params) ||
        !read_object(ret_message->params, "_meta", &ret_message->meta)) {
        ret_message->params = NULL;
        ret_message->meta = NULL;
        return;
    }
    ret_message->method = method == NULL ? "" : method;
    ret_message->kind = kind_of(value, ret_message, has_id);
}

void mcp_message_done(struct mcp_message *message)
{
    free(message->id);
    *message = (struct mcp_message){ .kind = MCP_MESSAGE_INVALID, .method = "" };
}

int mcp_message_refuse(struct mcp_message_fault *fault, int status, enum mcp_message_code code,
                       const char *format, ...)
{
    va_list arguments;

    fault->status = status;
    fault->code = code;
    va_start(arguments, format);
    (void)vsnprintf(fault->message, sizeof(fault->message), format, arguments);
    va_end(arguments);
    fault->data[0] = '\0';
    return -1;
}

void mcp_message_error(struct buf *out, const char *id, const struct mcp_message_fault *fault)
{
    struct json_out json;

    json_out_init(&json, out);
    json_out_open(&json, '{');
    json_out_key(&json, "jsonrpc");
    json_out_string(&json, "2.0");
    json_out_key(&json, "id");
    json_out_raw(&json, id == NULL ? "null" : id, id == NULL ? 4 : strlen(id));
    json_out_key(&json, "error");
    json_out_open(&json, '{');
    json_out_key(&json, "code");
    json_out_whole(&json, fault->code);
    json_out_key(&json, "message");
    json_out_string(&json, fault->message);
    if (fault->data[0] != '\0') {
        json_out_key(&json, "data");
        json_out_raw(&json, fault->data, strlen(fault->data));
    }
    json_out_close(&json, '}');
    json_out_close(&json, '}');
}

void mcp_message_begin(struct buf *out, const char *id)
{
    (void)buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":", id);
}

void mcp_message_end(struct buf *out)
{
    (void)buf_append_text(out, "}");
}
