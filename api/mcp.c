/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: one POST of the Model Context Protocol: read its messages, answer when all are done.
 * Owns: exchanges under way.
 * Threads: the handler on the quick lane; requests are done on any thread; a client that hangs up
 * on the server's.
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/mcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/header.h"
#include "api/json_in.h"
#include "api/mcp_diagnostic.h"
#include "api/mcp_exchange.h"
#include "api/mcp_method.h"
#include "api/mcp_version.h"
#include "api/mcp_workspace.h"
#include "api/resource.h"
#include "lib/base/alloc.h"
#include "lib/base/id.h"
#include "lib/base/text.h"

#define BATCH_MAX 64

/* ---- refusals of the whole body ---- */

static void refuse(struct api_call *call, const char *id, const struct mcp_message_fault *fault)
{
    call->reply.status = fault->status;
    api_reply_header(&call->reply, "Content-Type", "application/json");
    mcp_message_error(&call->reply.body, id, fault);
    api_call_finish(call);
}

static void finish_accepted(struct api_call *call)
{
    call->reply.status = 202;
    api_call_finish(call);
}

/* Which client of a caller it is; what is no id is nobody's. */
static const char *client_of(const struct api_call *call)
{
    const char *client = api_call_header(call, "Mcp-Session-Id");

    return client != NULL && id_valid(client) ? client : "";
}

/* ---- one message ---- */

static void take_one(struct api_call *call, struct json_object *tree, bool sse)
{
    struct mcp_message_fault fault;
    struct mcp_message message;
    struct mcp_exchange *exchange;
    bool stateless = false;
    int result = 0;

    mcp_message_read(tree, &message);
    if (message.kind == MCP_MESSAGE_INVALID) {
        result =
            mcp_message_refuse(&fault, 400, MCP_INVALID_REQUEST, "this is no JSON-RPC 2.0 message");
    } else {
        result = mcp_version_check(call, &message, &stateless, &fault);
    }
    if (result == 0 && stateless) {
        result = mcp_diagnostic_check(call, &message, &fault);
    }
    if (result < 0) {
        refuse(call, message.id, &fault);
        mcp_message_done(&message);
        (void)json_object_put(tree);
        return;
    }
    if (message.kind != MCP_MESSAGE_REQUEST) {
        if (message.kind == MCP_MESSAGE_NOTIFICATION) {
            mcp_method_notice(call, client_of(call), &message);
        }
        mcp_message_done(&message);
        (void)json_object_put(tree);
        finish_accepted(call);
        return;
    }
    exchange = mcp_exchange_new(call, tree, 1, sse);
    mcp_exchange_add(exchange, &message, client_of(call), stateless);
    mcp_exchange_begin(exchange);
}

/* ---- several ---- */

/* What is answered at once: a message that is none, or that may not come with others. */
static bool refuse_part(struct mcp_request *request)
{
    const struct mcp_message *message = &request->message;
    struct mcp_message_fault fault;

    if (message->kind == MCP_MESSAGE_INVALID) {
        (void)mcp_message_refuse(&fault, 200, MCP_INVALID_REQUEST,
                                 "this is no JSON-RPC 2.0 message");
    } else if (text_equal(message->method, "initialize")) {
        (void)mcp_message_refuse(&fault, 200, MCP_INVALID_REQUEST,
                                 "initialize may not come together with other messages");
    } else {
        return false;
    }
    mcp_message_error(&request->answer, message->id, &fault);
    return true;
}

static void take_part(struct api_call *call, struct mcp_exchange *exchange,
                      struct json_object *item)
{
    const char *client = client_of(call);
    struct mcp_message message;
    struct mcp_request *request;

    mcp_message_read(item, &message);
    if (message.kind == MCP_MESSAGE_RESPONSE || message.kind == MCP_MESSAGE_NOTIFICATION) {
        if (message.kind == MCP_MESSAGE_NOTIFICATION) {
            mcp_method_notice(call, client, &message);
        }
        mcp_message_done(&message);
        return;
    }
    request = mcp_exchange_add(exchange, &message, client, false);
    (void)refuse_part(request);
}

static void take_batch(struct api_call *call, struct json_object *tree, bool sse)
{
    const size_t count = json_object_array_length(tree);
    struct mcp_message_fault fault;
    struct mcp_exchange *exchange;
    int result = 0;

    if (!mcp_version_has_batches(call)) {
        result = mcp_message_refuse(&fault, 400, MCP_INVALID_REQUEST,
                                    "this revision of the protocol has no batches: send one "
                                    "message a POST");
    } else if (count == 0 || count > BATCH_MAX) {
        result = mcp_message_refuse(&fault, 400, MCP_INVALID_REQUEST,
                                    "a batch has 1 to %d messages", BATCH_MAX);
    }
    if (result < 0) {
        refuse(call, NULL, &fault);
        (void)json_object_put(tree);
        return;
    }
    exchange = mcp_exchange_new(call, tree, count, sse);
    mcp_exchange_set_batch(exchange);
    for (size_t i = 0; i < count; i++) {
        take_part(call, exchange, json_object_array_get_idx(tree, i));
    }
    mcp_exchange_begin(exchange);
}

/* ---- the handler ---- */

static int check_workspace(const struct api_call *call, struct err *err)
{
    struct mcp_workspace workspace;
    const int result = mcp_workspace_read(call, &workspace, err);

    mcp_workspace_done(&workspace);
    return result;
}

void mcp_post(struct api_call *call)
{
    static const char *const offered[] = { "application/json", "text/event-stream", NULL };
    const int form = header_accept(api_call_header(call, "Accept"), offered);
    struct mcp_message_fault fault;
    struct err err = ERR_INIT;
    struct json_object *tree;

    if (form < 0) {
        (void)err_set(&err, ERR_NOT_ACCEPTABLE, 0,
                      "the Accept header leaves out application/json and text/event-stream");
        resource_fail(call, &err);
        return;
    }
    if (check_workspace(call, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    tree = json_in_value(call->body, call->body_size, &err);
    if (tree == NULL) {
        (void)mcp_message_refuse(&fault, 400, MCP_PARSE_ERROR, "%s", err.msg);
        refuse(call, NULL, &fault);
        return;
    }
    if (json_object_is_type(tree, json_type_array)) {
        take_batch(call, tree, form == 1);
    } else {
        take_one(call, tree, form == 1);
    }
}
