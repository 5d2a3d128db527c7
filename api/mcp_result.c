/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write the results of tools.
 * Owns: nothing.
 * Threads: any.
 * May include: lib/base.
 */
#include "api/mcp_result.h"

#include "api/mcp_exchange.h"
#include "api/problem.h"

#define RESULT_MAX ((size_t)32 << 20)

void mcp_result_init(struct mcp_result *result, bool ok)
{
    *result = (struct mcp_result){ .failed = !ok,
                                   .content = BUF_INIT(RESULT_MAX),
                                   .structured = BUF_INIT(RESULT_MAX) };
    json_out_init(&result->parts, &result->content);
    json_out_open(&result->parts, '[');
    json_out_init(&result->json, &result->structured);
    json_out_open(&result->json, '{');
    json_out_key(&result->json, "ok");
    json_out_bool(&result->json, ok);
}

void mcp_result_text(struct mcp_result *result, const void *data, size_t size)
{
    struct json_out *json = &result->parts;

    json_out_open(json, '{');
    json_out_key(json, "type");
    json_out_string(json, "text");
    json_out_key(json, "text");
    json_out_text(json, data, size);
    json_out_close(json, '}');
}

void mcp_result_image(struct mcp_result *result, const char *mime, const void *base64, size_t size)
{
    struct json_out *json = &result->parts;

    json_out_open(json, '{');
    json_out_key(json, "type");
    json_out_string(json, "image");
    json_out_key(json, "data");
    json_out_text(json, base64, size);
    json_out_key(json, "mimeType");
    json_out_string(json, mime);
    json_out_close(json, '}');
}

static void write_answer(struct mcp_result *result, struct mcp_request *request)
{
    struct json_out json;

    mcp_message_begin(&request->answer, request->message.id);
    json_out_init(&json, &request->answer);
    json_out_open(&json, '{');
    if (request->stateless) {
        json_out_key(&json, "resultType");
        json_out_string(&json, "complete");
    }
    json_out_key(&json, "content");
    json_out_raw(&json, result->content.data, result->content.size);
    json_out_key(&json, "structuredContent");
    json_out_raw(&json, result->structured.data, result->structured.size);
    json_out_key(&json, "isError");
    json_out_bool(&json, result->failed);
    json_out_close(&json, '}');
    mcp_message_end(&request->answer);
}

void mcp_result_send(struct mcp_result *result, struct mcp_request *request)
{
    struct mcp_message_fault fault;
    bool fits;

    json_out_close(&result->parts, ']');
    json_out_close(&result->json, '}');
    fits = !json_out_failed(&result->parts) && !json_out_failed(&result->json);
    if (fits) {
        write_answer(result, request);
    }
    buf_done(&result->content);
    buf_done(&result->structured);
    if (fits) {
        mcp_exchange_done(request);
        return;
    }
    (void)mcp_message_refuse(&fault, 500, MCP_INTERNAL_ERROR,
                             "the result is larger than this server can send");
    mcp_exchange_fail(request, &fault);
}

/* The defaults speak of HTTP: for arguments there is a better one. */
static const char *remedy_of(const struct err *err, const struct problem *problem)
{
    if (err->remedy[0] != '\0') {
        return err->remedy;
    }
    return err->code == ERR_BAD_VALUE || err->code == ERR_UNKNOWN_FIELD
               ? "call the tool again with arguments that fit its input schema"
               : problem->remedy;
}

void mcp_result_fail(struct mcp_request *request, const struct err *err)
{
    const struct problem *problem = problem_of(err->code);
    const char *remedy = remedy_of(err, problem);
    CLEANUP_BUF struct buf text = BUF_INIT((size_t)4096);
    struct mcp_result result;

    mcp_result_init(&result, false);
    (void)buf_append_text(&text, err->msg[0] != '\0' ? err->msg : problem->title);
    if (remedy != NULL && remedy[0] != '\0') {
        (void)buf_printf(&text, "\n%s", remedy);
    }
    mcp_result_text(&result, text.data, text.size);
    json_out_key(&result.json, "error");
    json_out_open(&result.json, '{');
    json_out_key(&result.json, "code");
    json_out_string(&result.json, problem->code);
    json_out_key(&result.json, "message");
    json_out_string(&result.json, err->msg);
    json_out_key(&result.json, "remediation");
    json_out_string(&result.json, remedy);
    json_out_close(&result.json, '}');
    mcp_result_send(&result, request);
}
