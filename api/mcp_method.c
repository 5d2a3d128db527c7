/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: answer the methods of the protocol.
 * Owns: nothing.
 * Threads: handlers on the quick lane.
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/mcp_method.h"

#include <stdlib.h>
#include <string.h>

#include "api/json_out.h"
#include "api/mcp_exchange.h"
#include "api/mcp_tool.h"
#include "api/mcp_version.h"
#include "api/resource.h"
#include "lib/base/id.h"
#include "lib/base/text.h"

/* How long a client may keep the list of tools, which only a new server changes. */
#define LIST_TTL_MS 300000

static const char instructions[] =
    "Runs code and shell commands in isolated boxes on the user's machine, without network. Files "
    "under /workspace stay between calls; variables of Python stay too, since run_code uses one "
    "warm interpreter unless kernel is false. Leave session_id out to work in your own default "
    "session, which is made on demand and removed after a day without use. A figure that the code "
    "shows (matplotlib, PIL) comes back as an image.";

static const char shared_place[] =
    " /workspace is a directory of the user's own: change there only what you are asked to.";
static const char readonly_place[] = " /workspace is a directory of the user's own and read-only: "
                                     "write to /tmp, which lasts as long "
                                     "as the interpreter or the command.";

/* ---- results ---- */

static void begin(struct mcp_request *request, struct json_out *ret_json)
{
    mcp_message_begin(&request->answer, request->message.id);
    json_out_init(ret_json, &request->answer);
    json_out_open(ret_json, '{');
    if (request->stateless) {
        json_out_key(ret_json, "resultType");
        json_out_string(ret_json, "complete");
    }
}

static void end(struct mcp_request *request, struct json_out *json)
{
    json_out_close(json, '}');
    mcp_message_end(&request->answer);
    mcp_exchange_done(request);
}

static void write_instructions(const struct mcp_request *request, struct json_out *json)
{
    CLEANUP_BUF struct buf text = BUF_INIT((size_t)4096);

    (void)buf_append_text(&text, instructions);
    if (request->workspace.path != NULL) {
        (void)buf_append_text(&text, request->workspace.readonly ? readonly_place : shared_place);
    }
    json_out_text(json, text.data, text.size);
}

static void write_capabilities(const struct mcp_request *request, struct json_out *json)
{
    json_out_key(json, "capabilities");
    json_out_open(json, '{');
    json_out_key(json, "tools");
    json_out_open(json, '{');
    json_out_close(json, '}');
    json_out_close(json, '}');
    json_out_key(json, "instructions");
    write_instructions(request, json);
}

static void write_server(struct json_out *json)
{
    json_out_open(json, '{');
    json_out_key(json, "name");
    json_out_string(json, "kernd");
    json_out_key(json, "title");
    json_out_string(json, "kernd sandbox");
    json_out_key(json, "version");
    json_out_string(json, KERND_VERSION);
    json_out_close(json, '}');
}

static void write_caching(const struct mcp_request *request, struct json_out *json)
{
    if (request->stateless) {
        json_out_key(json, "ttlMs");
        json_out_whole(json, LIST_TTL_MS);
        json_out_key(json, "cacheScope");
        json_out_string(json, request->workspace.path != NULL ? "private" : "public");
    }
}

/* ---- methods ---- */

static void answer_initialize(struct mcp_request *request)
{
    const char *asked = mcp_message_text(request->message.params, "protocolVersion");
    char client[ID_SIZE];
    struct json_out json;

    mcp_exchange_name_client(request->exchange, id_make("mcp", client));
    begin(request, &json);
    json_out_key(&json, "protocolVersion");
    json_out_string(&json, mcp_version_choose(asked));
    write_capabilities(request, &json);
    json_out_key(&json, "serverInfo");
    write_server(&json);
    end(request, &json);
}

static void answer_discover(struct mcp_request *request)
{
    struct json_out json;

    begin(request, &json);
    json_out_key(&json, "supportedVersions");
    json_out_open(&json, '[');
    json_out_string(&json, MCP_VERSION_STATELESS);
    json_out_close(&json, ']');
    write_capabilities(request, &json);
    write_caching(request, &json);
    json_out_key(&json, "_meta");
    json_out_open(&json, '{');
    json_out_key(&json, "io.modelcontextprotocol/serverInfo");
    write_server(&json);
    json_out_close(&json, '}');
    end(request, &json);
}

static void answer_ping(struct mcp_request *request)
{
    struct json_out json;

    begin(request, &json);
    end(request, &json);
}

static void answer_list(struct mcp_request *request)
{
    const struct buf *tools = mcp_live_tools(request->api->mcp);
    struct mcp_message_fault fault;
    struct json_out json;

    /* There is one page: no cursor was ever given out. */
    if (mcp_message_text(request->message.params, "cursor") != NULL) {
        (void)mcp_message_refuse(&fault, 400, MCP_INVALID_PARAMS, "there is no such cursor");
        mcp_exchange_fail(request, &fault);
        return;
    }
    begin(request, &json);
    json_out_key(&json, "tools");
    json_out_raw(&json, tools->data, tools->size);
    write_caching(request, &json);
    end(request, &json);
}

/* In which of the two eras a method exists. */
struct method {
    const char *name;
    void (*answer)(struct mcp_request *request);
    bool shaken;
    bool stateless;
};

static const struct method methods[] = {
    { "initialize", answer_initialize, true, false },    { "ping", answer_ping, true, false },
    { "server/discover", answer_discover, false, true }, { "tools/list", answer_list, true, true },
    { "tools/call", mcp_tool_call, true, true },
};

void mcp_method_answer(struct mcp_request *request)
{
    struct mcp_message_fault fault;

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (text_equal(methods[i].name, request->message.method) &&
            (request->stateless ? methods[i].stateless : methods[i].shaken)) {
            methods[i].answer(request);
            return;
        }
    }
    (void)mcp_message_refuse(&fault, 404, MCP_METHOD_NOT_FOUND, "there is no method %.100s here",
                             request->message.method);
    mcp_exchange_fail(request, &fault);
}

void mcp_method_notice(struct api_call *call, const char *client, const struct mcp_message *message)
{
    struct json_object *id = NULL;
    struct mcp_live_key key = { .caller = call->caller, .client = client };
    char *text;

    if (!text_equal(message->method, "notifications/cancelled") || message->params == NULL ||
        !json_object_object_get_ex(message->params, "requestId", &id)) {
        return;
    }
    text = mcp_message_id(id);
    if (text != NULL) {
        key.id = text;
        mcp_live_cancel(call->api->mcp, &key);
    }
    free(text);
}
