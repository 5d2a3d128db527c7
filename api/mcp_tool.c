/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read a tools/call and hand it to its tool.
 * Owns: the table of tools.
 * Threads: handlers on the quick lane.
 * May include: lib/base, json-c.
 */
#include "api/mcp_tool.h"

#include "api/mcp_arguments.h"
#include "api/mcp_cell.h"
#include "api/mcp_diagnostic.h"
#include "api/mcp_edit.h"
#include "api/mcp_exchange.h"
#include "api/mcp_file.h"
#include "api/mcp_info.h"
#include "api/mcp_result.h"
#include "api/mcp_run.h"
#include "api/mcp_search.h"
#include "api/mcp_snapshot.h"
#include "lib/base/text.h"

/* Each takes the arguments over and answers the request, now or later. */
struct tool {
    const char *name;
    const struct field_table *table;
    void (*call)(struct mcp_request *request, struct mcp_arguments *arguments);
};

static const struct tool tools[] = {
    { "run_code", &mcp_arguments_run_code, mcp_run_code },
    { "run_command", &mcp_arguments_run_command, mcp_run_command },
    { "write_file", &mcp_arguments_write_file, mcp_edit_write },
    { "read_file", &mcp_arguments_read_file, mcp_file_read },
    { "edit_file", &mcp_arguments_edit_file, mcp_edit_replace },
    { "list_files", &mcp_arguments_list_files, mcp_search_list },
    { "search_files", &mcp_arguments_search_files, mcp_search_text },
    { "reset_kernel", &mcp_arguments_reset_kernel, mcp_cell_reset },
    { "snapshot", &mcp_arguments_snapshot, mcp_snapshot_make },
    { "restore", &mcp_arguments_restore, mcp_snapshot_restore },
    { "session_info", &mcp_arguments_session_info, mcp_info_session },
};

static const struct tool *find_tool(const char *name)
{
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        if (text_equal(tools[i].name, name)) {
            return &tools[i];
        }
    }
    return NULL;
}

void mcp_tool_call(struct mcp_request *request)
{
    const char *name = mcp_message_text(request->message.params, "name");
    const struct tool *tool = name == NULL ? NULL : find_tool(name);
    struct json_object *object = NULL;
    struct mcp_message_fault fault;
    struct mcp_arguments *arguments;
    struct err err = ERR_INIT;

    if (tool == NULL && name != NULL && mcp_diagnostic_call(request, name)) {
        return;
    }
    if (tool == NULL) {
        (void)mcp_message_refuse(&fault, 400, MCP_INVALID_PARAMS, "there is no tool %.100s",
                                 name == NULL ? "without a name" : name);
        mcp_exchange_fail(request, &fault);
        return;
    }
    if (json_object_object_get_ex(request->message.params, "arguments", &object) &&
        object != NULL && !json_object_is_type(object, json_type_object)) {
        (void)mcp_message_refuse(&fault, 400, MCP_INVALID_PARAMS, "arguments must be an object");
        mcp_exchange_fail(request, &fault);
        return;
    }
    arguments = mcp_arguments_read(tool->table, object, &err);
    if (arguments == NULL) {
        mcp_result_fail(request, &err);
        return;
    }
    tool->call(request, arguments);
}
