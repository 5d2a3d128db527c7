/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_arguments: what a tool is called with. Pure; any thread.
 */
#ifndef KERND_API_MCP_ARGUMENTS_H
#define KERND_API_MCP_ARGUMENTS_H

#include <json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/field.h"
#include "lib/base/err.h"
#include "lib/sandbox/run.h"

/* Bytes with a NUL behind. data NULL: not given. */
struct mcp_arguments_text {
    char *data;
    size_t size;
};

/* The arguments of all tools; owned. What a tool does not have is zero. */
struct mcp_arguments {
    struct run_request run; /* code, stdin, cwd, language, timeout: first, for shared readers */
    char *session_id;       /* NULL: the default one */
    char *command;
    bool kernel;
    bool kernel_set; /* kernel was given */
    struct mcp_arguments_text path;
    struct mcp_arguments_text content;
    struct mcp_arguments_text old_text;
    struct mcp_arguments_text new_text;
    char *glob;
    char *name; /* of a snapshot */
    bool replace_all;
    bool ignore_case;
    bool flat; /* list: not what is in directories below */
    uint64_t offset;
    uint64_t limit;
};

void mcp_arguments_free(struct mcp_arguments *arguments); /* NULL is fine */

/* By the table of a tool. object NULL: no arguments. NULL with UNKNOWN_FIELD, BAD_VALUE ... */
struct mcp_arguments *mcp_arguments_read(const struct field_table *table,
                                         struct json_object *object, struct err *err);

/* The tables, one a tool. */
extern const struct field_table mcp_arguments_run_code;
extern const struct field_table mcp_arguments_run_command;
extern const struct field_table mcp_arguments_write_file;
extern const struct field_table mcp_arguments_read_file;
extern const struct field_table mcp_arguments_edit_file;
extern const struct field_table mcp_arguments_list_files;
extern const struct field_table mcp_arguments_search_files;
extern const struct field_table mcp_arguments_reset_kernel;
extern const struct field_table mcp_arguments_session_info;
extern const struct field_table mcp_arguments_snapshot;
extern const struct field_table mcp_arguments_restore;

#endif
