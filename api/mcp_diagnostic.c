/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the tools that a conformance suite calls. They go through the same code as the real ones:
 * results by mcp_result, progress by a command in a box.
 * Owns: nothing.
 * Threads: handlers on the quick lane.
 * May include: lib/base, json-c.
 */
#include "api/mcp_diagnostic.h"

#include <stdio.h>
#include <string.h>

#include "api/mcp_arguments.h"
#include "api/mcp_exchange.h"
#include "api/mcp_live.h"
#include "api/mcp_result.h"
#include "api/mcp_run.h"
#include "api/mcp_version.h"
#include "api/resource.h"
#include "lib/base/alloc.h"
#include "lib/base/text.h"

/* A red pixel. */
#define PNG                                                                            \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAA" \
    "AElFTkSuQmCC"
/* A RIFF header and no sample. */
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
#define AUDIO "{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}"
#define RESOURCE                                                                     \
    "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded\",\"mimeType\":" \
    "\"application/json\",\"text\":\"{\\\"test\\\":true}\"}}"
#define MIRRORED_TOOL "test_mirrored_header"
#define MIRRORED_ARGUMENT "region"
#define MIRRORED_HEADER "Mcp-Param-Region"

static void add_text(struct mcp_result *result, const char *text)
{
    mcp_result_text(result, text, strlen(text));
}

static void add_part(struct mcp_result *result, const char *json)
{
    json_out_raw(&result->parts, json, strlen(json));
}

static void send_text(struct mcp_request *request)
{
    struct mcp_result result;

    mcp_result_init(&result, true);
    add_text(&result, "This is a simple text response for testing.");
    mcp_result_send(&result, request);
}

static void send_image(struct mcp_request *request)
{
    struct mcp_result result;

    mcp_result_init(&result, true);
    mcp_result_image(&result, "image/png", PNG, strlen(PNG));
    mcp_result_send(&result, request);
}

static void send_audio(struct mcp_request *request)
{
    struct mcp_result result;

    mcp_result_init(&result, true);
    add_part(&result, AUDIO);
    mcp_result_send(&result, request);
}

static void send_resource(struct mcp_request *request)
{
    struct mcp_result result;

    mcp_result_init(&result, true);
    add_part(&result, RESOURCE);
    mcp_result_send(&result, request);
}

static void send_mixed(struct mcp_request *request)
{
    struct mcp_result result;

    mcp_result_init(&result, true);
    add_text(&result, "Multiple content types test:");
    mcp_result_image(&result, "image/png", PNG, strlen(PNG));
    add_part(&result, RESOURCE);
    mcp_result_send(&result, request);
}

static void send_failure(struct mcp_request *request)
{
    struct mcp_result result;

    mcp_result_init(&result, false);
    add_text(&result, "This tool intentionally returns an error for testing");
    mcp_result_send(&result, request);
}

/* Lines of a command in a box, slow enough for a message each (mcp_progress.c). */
static void send_progress(struct mcp_request *request)
{
    struct mcp_arguments *arguments = alloc_zero(1, sizeof(*arguments));

    arguments->command =
        alloc_text("for step in 0 25 50 75 100; do echo $step; sleep 0.7; done; echo done");
    mcp_run_command(request, arguments);
}

/* The protocol's own example: it would ask the client's model. */
static void want_sampling(struct mcp_request *request)
{
    struct json_object *capabilities = NULL;
    struct mcp_message_fault fault;

    if (!request->stateless ||
        (json_object_object_get_ex(request->message.meta,
                                   "io.modelcontextprotocol/clientCapabilities", &capabilities) &&
         json_object_object_get_ex(capabilities, "sampling", NULL))) {
        send_text(request);
        return;
    }
    (void)mcp_message_refuse(&fault, 400, MCP_MISSING_CAPABILITY,
                             "this tool needs a client with sampling");
    (void)snprintf(fault.data, sizeof(fault.data), "{\"requiredCapabilities\":{\"sampling\":{}}}");
    mcp_exchange_fail(request, &fault);
}

static const struct {
    const char *name;
    void (*call)(struct mcp_request *request);
} tools[] = {
    { "test_simple_text", send_text },
    { "test_image_content", send_image },
    { "test_audio_content", send_audio },
    { "test_embedded_resource", send_resource },
    { "test_multiple_content_types", send_mixed },
    { "test_error_handling", send_failure },
    { "test_tool_with_progress", send_progress },
    { "json_schema_2020_12_tool", send_text },
    { "test_missing_capability", want_sampling },
    { "test_streaming_elicitation", send_text }, /* which asks nobody */
    { "test_logging_tool", send_text },          /* nor logs */
    { MIRRORED_TOOL, send_text },
};

bool mcp_diagnostic_call(struct mcp_request *request, const char *name)
{
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        if (mcp_live_has_test_tools(request->api->mcp) && text_equal(tools[i].name, name)) {
            tools[i].call(request);
            return true;
        }
    }
    return false;
}

int mcp_diagnostic_check(const struct api_call *call, const struct mcp_message *message,
                         struct mcp_message_fault *fault)
{
    struct json_object *arguments = NULL;
    const char *value;

    if (!mcp_live_has_test_tools(call->api->mcp) ||
        !text_equal(mcp_message_text(message->params, "name"), MIRRORED_TOOL) ||
        !json_object_object_get_ex(message->params, "arguments", &arguments)) {
        return 0;
    }
    value = mcp_message_text(arguments, MIRRORED_ARGUMENT);
    return value == NULL ? 0 : mcp_version_check_header(call, MIRRORED_HEADER, value, fault);
}
