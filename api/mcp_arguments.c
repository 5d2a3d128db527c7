/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the tables of the arguments of tools.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/mcp_arguments.h"

#include <stdlib.h>
#include <string.h>

#include "api/content_in.h"
#include "api/json_in.h"
#include "api/run_in.h"
#include "lib/base/alloc.h"
#include "lib/base/id.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define LARGEST 9007199254740991.0 /* 2^53 - 1 */

void mcp_arguments_free(struct mcp_arguments *arguments)
{
    if (arguments == NULL) {
        return;
    }
    run_request_done(&arguments->run);
    free(arguments->session_id);
    free(arguments->command);
    free(arguments->path.data);
    free(arguments->content.data);
    free(arguments->old_text.data);
    free(arguments->new_text.data);
    free(arguments->glob);
    free(arguments->name);
    free(arguments);
}

/* ---- single arguments ---- */

static int read_bytes(struct json_object *value, const char *pointer,
                      struct mcp_arguments_text *text, struct err *err)
{
    if (!json_object_is_type(value, json_type_string)) {
        return field_wrong_type(pointer, "a string", value, err);
    }
    text->size = (size_t)json_object_get_string_len(value);
    text->data = alloc_copy(json_object_get_string(value), text->size);
    return 0;
}

static int read_string(struct json_object *value, const char *pointer, char **text, struct err *err)
{
    struct mcp_arguments_text bytes = { .data = NULL };

    if (read_bytes(value, pointer, &bytes, err) < 0 || bytes.data == NULL) {
        return -1;
    }
    *text = bytes.data;
    return memchr(bytes.data, '\0', bytes.size) == NULL
               ? 0
               : err_field(err, ERR_BAD_VALUE, pointer, "%s holds a NUL character", pointer);
}

static int read_path(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    return read_bytes(value, pointer, &((struct mcp_arguments *)target)->path, err);
}

static int read_content(void *target, struct json_object *value, const char *pointer,
                        struct err *err)
{
    return read_bytes(value, pointer, &((struct mcp_arguments *)target)->content, err);
}

static int read_old_text(void *target, struct json_object *value, const char *pointer,
                         struct err *err)
{
    struct mcp_arguments_text *text = &((struct mcp_arguments *)target)->old_text;

    if (read_bytes(value, pointer, text, err) < 0) {
        return -1;
    }
    return text->size > 0 ? 0 : err_field(err, ERR_BAD_VALUE, pointer, "%s is empty", pointer);
}

static int read_new_text(void *target, struct json_object *value, const char *pointer,
                         struct err *err)
{
    return read_bytes(value, pointer, &((struct mcp_arguments *)target)->new_text, err);
}

static int read_glob(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    return read_string(value, pointer, &((struct mcp_arguments *)target)->glob, err);
}

static int read_command(void *target, struct json_object *value, const char *pointer,
                        struct err *err)
{
    char **command = &((struct mcp_arguments *)target)->command;

    if (read_string(value, pointer, command, err) < 0) {
        return -1;
    }
    return strlen(*command) <= RUN_IN_ARGUMENT_MAX
               ? 0
               : err_field(err, ERR_BAD_VALUE, pointer,
                           "%s is above %d bytes: write it to a file, and run that", pointer,
                           RUN_IN_ARGUMENT_MAX);
}

static int read_cwd(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    struct run_request *run = target;
    char *path = NULL;

    if (content_in_path(value, pointer, &path, err) < 0) {
        return -1;
    }
    run->cwd = *path == '/' ? alloc_text(path) : alloc_printf("/workspace/%s", path);
    free(path);
    return 0;
}

static int read_session(void *target, struct json_object *value, const char *pointer,
                        struct err *err)
{
    char **id = &((struct mcp_arguments *)target)->session_id;

    if (read_string(value, pointer, id, err) < 0) {
        return -1;
    }
    return id_valid(*id)
               ? 0
               : err_field(err, ERR_BAD_VALUE, pointer,
                           "%s is no session id: leave it out for the default session", pointer);
}

static int read_name(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    char **name = &((struct mcp_arguments *)target)->name;

    if (read_string(value, pointer, name, err) < 0) {
        return -1;
    }
    return id_valid(*name) ? 0
                           : err_field(err, ERR_BAD_VALUE, pointer,
                                       "%s must have 1 to 64 of A-Z, a-z, 0-9, \".\", \"_\" and "
                                       "\"-\", the first one a letter or a digit",
                                       pointer);
}

static int read_kernel(void *target, struct json_object *value, const char *pointer,
                       struct err *err)
{
    struct mcp_arguments *arguments = target;

    if (!json_object_is_type(value, json_type_boolean)) {
        return field_wrong_type(pointer, "true or false", value, err);
    }
    arguments->kernel = json_object_get_boolean(value);
    arguments->kernel_set = true;
    return 0;
}

static int read_recursive(void *target, struct json_object *value, const char *pointer,
                          struct err *err)
{
    if (!json_object_is_type(value, json_type_boolean)) {
        return field_wrong_type(pointer, "true or false", value, err);
    }
    ((struct mcp_arguments *)target)->flat = !json_object_get_boolean(value);
    return 0;
}

static const char *const languages[] = { "python", "bash", "node", NULL };

static void choose_language(void *target, size_t index)
{
    ((struct run_request *)target)->language = (enum run_language)index;
}

/* ---- the tables ---- */

#define AT(member) .offset = offsetof(struct mcp_arguments, member)
#define SESSION                                                         \
    {                                                                   \
        .name = "session_id", .type = FIELD_OTHER, .read = read_session \
    }
#define PATH_GIVEN                                                               \
    {                                                                            \
        .name = "path", .type = FIELD_OTHER, .required = true, .read = read_path \
    }
#define TIMEOUT                                                                            \
    {                                                                                      \
        .name = "timeout_s", .type = FIELD_NUMBER, AT(run.limits.timeout_s), .min = 0.001, \
        .max = 1e9                                                                         \
    }
#define STDIN                                                           \
    {                                                                   \
        .name = "stdin", .type = FIELD_OTHER, .read = run_in_read_stdin \
    }
#define LANGUAGE                                                                                  \
    {                                                                                             \
        .name = "language", .type = FIELD_CHOICE, .choices = languages, .choose = choose_language \
    }
#define LIMIT(most)                                                              \
    {                                                                            \
        .name = "limit", .type = FIELD_WHOLE, AT(limit), .min = 1, .max = (most) \
    }
#define TABLE(tool) const struct field_table mcp_arguments_##tool = { tool, COUNT_OF(tool), NULL }

static const struct field run_code[] = {
    { .name = "code", .type = FIELD_OTHER, .required = true, .read = run_in_read_code },
    LANGUAGE,
    TIMEOUT,
    STDIN,
    SESSION,
    { .name = "kernel", .type = FIELD_OTHER, .read = read_kernel },
};
TABLE(run_code);

static const struct field run_command[] = {
    { .name = "command", .type = FIELD_OTHER, .required = true, .read = read_command },
    { .name = "cwd", .type = FIELD_OTHER, .read = read_cwd },
    TIMEOUT,
    STDIN,
    SESSION,
};
TABLE(run_command);

static const struct field write_file[] = {
    PATH_GIVEN,
    { .name = "content", .type = FIELD_OTHER, .required = true, .read = read_content },
    SESSION,
};
TABLE(write_file);

static const struct field read_file[] = {
    PATH_GIVEN,
    { .name = "offset", .type = FIELD_WHOLE, AT(offset), .min = 1, .max = LARGEST },
    LIMIT(100000),
    SESSION,
};
TABLE(read_file);

static const struct field edit_file[] = {
    PATH_GIVEN,
    { .name = "old_text", .type = FIELD_OTHER, .required = true, .read = read_old_text },
    { .name = "new_text", .type = FIELD_OTHER, .required = true, .read = read_new_text },
    { .name = "replace_all", .type = FIELD_BOOL, AT(replace_all) },
    SESSION,
};
TABLE(edit_file);

static const struct field list_files[] = {
    { .name = "path", .type = FIELD_OTHER, .read = read_path },
    { .name = "glob", .type = FIELD_OTHER, .read = read_glob },
    { .name = "recursive", .type = FIELD_OTHER, .read = read_recursive },
    LIMIT(1000),
    SESSION,
};
TABLE(list_files);

static const struct field search_files[] = {
    { .name = "text", .type = FIELD_OTHER, .required = true, .read = read_old_text },
    { .name = "path", .type = FIELD_OTHER, .read = read_path },
    { .name = "glob", .type = FIELD_OTHER, .read = read_glob },
    { .name = "ignore_case", .type = FIELD_BOOL, AT(ignore_case) },
    LIMIT(1000),
    SESSION,
};
TABLE(search_files);

static const struct field reset_kernel[] = { LANGUAGE, SESSION };
TABLE(reset_kernel);

static const struct field session_info[] = { SESSION };
TABLE(session_info);

static const struct field snapshot[] = {
    { .name = "name", .type = FIELD_OTHER, .read = read_name },
    SESSION,
};
TABLE(snapshot);

static const struct field restore[] = {
    { .name = "snapshot_id", .type = FIELD_OTHER, .required = true, .read = read_name },
    SESSION,
};
TABLE(restore);

struct mcp_arguments *mcp_arguments_read(const struct field_table *table,
                                         struct json_object *object, struct err *err)
{
    struct mcp_arguments *arguments = alloc_zero(1, sizeof(*arguments));
    CLEANUP_JSON struct json_object *none = json_object_new_object();

    if (field_read(table, object == NULL ? none : object, arguments, err) < 0) {
        mcp_arguments_free(arguments);
        return NULL;
    }
    return arguments;
}
