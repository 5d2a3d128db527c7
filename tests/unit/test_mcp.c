/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: messages, revisions and clipped output of the Model Context Protocol.
 * Owns: nothing.
 * Threads: one.
 * May include: api, lib/base.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "api/json_in.h"
#include "api/mcp_live.h"
#include "api/mcp_message.h"
#include "api/mcp_output.h"
#include "api/mcp_stdio.h"
#include "api/mcp_version.h"
#include "lib/base/text.h"

/* ---- messages ---- */

static enum mcp_message_kind kind_of(const char *text)
{
    CLEANUP_JSON struct json_object *tree = json_in_value(text, strlen(text), NULL);
    struct mcp_message message;
    enum mcp_message_kind kind;

    mcp_message_read(tree, &message);
    kind = message.kind;
    mcp_message_done(&message);
    return kind;
}

static void kinds_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(kind_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}"),
                     MCP_MESSAGE_REQUEST);
    assert_int_equal(kind_of("{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"a\"}"),
                     MCP_MESSAGE_REQUEST);
    assert_int_equal(kind_of("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{}}"),
                     MCP_MESSAGE_NOTIFICATION);
    assert_int_equal(kind_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"), MCP_MESSAGE_RESPONSE);
    assert_int_equal(kind_of("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}"),
                     MCP_MESSAGE_INVALID);
    assert_int_equal(kind_of("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}"),
                     MCP_MESSAGE_INVALID);
    assert_int_equal(kind_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}"),
                     MCP_MESSAGE_INVALID);
    assert_int_equal(kind_of("{\"jsonrpc\":\"2.0\",\"id\":1}"), MCP_MESSAGE_INVALID);
    assert_int_equal(kind_of("{\"id\":1,\"method\":\"a\"}"), MCP_MESSAGE_INVALID);
    assert_int_equal(kind_of("[]"), MCP_MESSAGE_INVALID);
}

static void errors_are_whole_messages(void **state)
{
    struct mcp_message_fault fault;
    CLEANUP_BUF struct buf out = BUF_INIT(1000);

    (void)state;
    (void)mcp_message_refuse(&fault, 400, MCP_INVALID_PARAMS, "no \"%s\"", "x");
    mcp_message_error(&out, NULL, &fault);
    assert_string_equal(out.data, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32602,"
                                  "\"message\":\"no \\\"x\\\"\"}}");
}

/* ---- revisions ---- */

static int check(const char *text, const struct api_header *headers, size_t count,
                 struct mcp_message_fault *fault)
{
    CLEANUP_JSON struct json_object *tree = json_in_value(text, strlen(text), NULL);
    const struct api_call call = { .headers = headers, .header_count = count };
    struct mcp_message message;
    bool stateless = false;
    int result;

    mcp_message_read(tree, &message);
    result = mcp_version_check(&call, &message, &stateless, fault);
    mcp_message_done(&message);
    return result < 0 ? -1 : stateless ? 1 : 0;
}

static void handshakes_get_what_can_be(void **state)
{
    (void)state;
    assert_string_equal(mcp_version_choose("2025-03-26"), "2025-03-26");
    assert_string_equal(mcp_version_choose("2026-07-28"), "2025-11-25");
    assert_string_equal(mcp_version_choose(NULL), "2025-11-25");
}

static void eras_are_told_apart(void **state)
{
    static const char plain[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    static const char call[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\","
        "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{}}}}";
    const struct api_header old = { "mcp-protocol-version", "2025-06-18" };
    const struct api_header unknown = { "MCP-Protocol-Version", "1900-01-01" };
    const struct api_header all[] = { { "MCP-Protocol-Version", "2026-07-28" },
                                      { "Mcp-Method", " tools/call\t" },
                                      { "Mcp-Name", "=?base64?YQ==?=" } };
    struct mcp_message_fault fault;

    (void)state;
    assert_int_equal(check(plain, NULL, 0, &fault), 0);
    assert_int_equal(check(plain, &old, 1, &fault), 0);
    assert_int_equal(check(plain, &unknown, 1, &fault), -1);
    assert_int_equal(fault.code, MCP_INVALID_PARAMS);
    assert_int_equal(check(call, all, 3, &fault), 1);
    assert_int_equal(check(call, all, 2, &fault), -1);
    assert_int_equal(fault.code, MCP_HEADER_MISMATCH);
    assert_int_equal(check(call, NULL, 0, &fault), -1);
    assert_int_equal(fault.status, 400);
}

/* ---- output ---- */

static void long_text_loses_its_middle(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT(10000);
    CLEANUP_BUF struct buf out = BUF_INIT(10000);

    (void)state;
    mcp_output_clip(&out, "short", 5, 100);
    assert_string_equal(out.data, "short");
    buf_reset(&out);
    (void)buf_append_text(&text, "a");
    for (int i = 0; i < 500; i++) {
        (void)buf_append_text(&text, "\xc3\xa9");
    }
    mcp_output_clip(&out, text.data, text.size, 100);
    assert_true(text_utf8_valid(out.data, out.size));
    assert_null(strstr(out.data, "\xef\xbf\xbd"));
    assert_non_null(strstr(out.data, "bytes left out"));
    assert_true(out.size < 300);
}

static void descriptions_are_one_line(void **state)
{
    struct mcp_live *live = mcp_live_new(false);
    const struct buf *tools = mcp_live_tools(live);
    CLEANUP_JSON struct json_object *tree = json_in_value(tools->data, tools->size, NULL);

    (void)state;
    assert_non_null(tree);
    assert_null(memchr(tools->data, '\n', tools->size));
    assert_true(json_object_array_length(tree) > 5);
    mcp_live_free(live);
}

/* ---- lines ---- */

static void lines_get_their_headers(void **state)
{
    static const char text[] =
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/"
        "call\",\"params\":{\"name\":\"\xc3\xa9\","
        "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}";
    static const char evil[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\r\\nEvil: 1\",\"params\":{"
        "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}";
    struct mcp_stdio_line line;

    (void)state;
    mcp_stdio_read(text, sizeof(text) - 1, &line);
    assert_string_equal(line.id, "\"x\"");
    assert_string_equal(line.headers.data, "MCP-Protocol-Version: 2026-07-28\r\n"
                                           "Mcp-Method: tools/call\r\n"
                                           "Mcp-Name: =?base64?w6k=?=\r\n");
    mcp_stdio_line_done(&line);
    mcp_stdio_read(evil, sizeof(evil) - 1, &line);
    assert_null(strstr(line.headers.data, "Evil"));
    mcp_stdio_line_done(&line);
    mcp_stdio_read("{", 1, &line);
    assert_true(line.unreadable);
    mcp_stdio_line_done(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_told_apart),       cmocka_unit_test(errors_are_whole_messages),
        cmocka_unit_test(handshakes_get_what_can_be), cmocka_unit_test(eras_are_told_apart),
        cmocka_unit_test(long_text_loses_its_middle), cmocka_unit_test(descriptions_are_one_line),
        cmocka_unit_test(lines_get_their_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
