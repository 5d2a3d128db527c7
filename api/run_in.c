/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the tables of the fields of run and runCode.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/run_in.h"

#include <string.h>

#include "api/content_in.h"
#include "api/field.h"
#include "api/files_in.h"
#include "api/json_in.h"
#include "api/options_in.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/id.h"
#include "lib/base/text.h"
#include "lib/sandbox/guest_env.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* What a double holds exactly; the server's maxima are far below. */
#define LARGEST_WHOLE 9007199254740991.0

/* A program would get the text cut at it. */
static int refuse_nul(const char *pointer, struct err *err)
{
    (void)err_field(err, ERR_BAD_JSON, pointer, "%s holds a NUL character", pointer);
    return err_remedy(err, "leave the NUL out; bytes of any value go into \"files\" or \"stdin\"");
}

/* ---- command ---- */

static int read_argument(struct strv *command, struct json_object *item, const char *pointer,
                         struct err *err)
{
    const char *text = json_object_get_string(item);

    if (!json_object_is_type(item, json_type_string)) {
        return field_wrong_type(pointer, "a string", item, err);
    }
    if (content_in_has_nul(item)) {
        return refuse_nul(pointer, err);
    }
    if (strlen(text) > RUN_IN_ARGUMENT_MAX) {
        (void)err_field(err, ERR_BAD_VALUE, pointer, "%s is above %d bytes", pointer,
                        RUN_IN_ARGUMENT_MAX);
        return err_remedy(err, "send it as a file (\"files\") or through \"stdin\"");
    }
    strv_add(command, text);
    return 0;
}

static int read_command(void *target, struct json_object *value, const char *pointer,
                        struct err *err)
{
    struct run_request *request = target;
    char item[FIELD_POINTER_SIZE];

    if (!json_object_is_type(value, json_type_array)) {
        (void)field_wrong_type(pointer, "an array of strings", value, err);
        return json_object_is_type(value, json_type_string)
                   ? err_remedy(err, "for a shell line send [\"sh\", \"-c\", \"...\"]")
                   : -1;
    }
    for (size_t i = 0; i < json_object_array_length(value); i++) {
        if (read_argument(&request->command, json_object_array_get_idx(value, i),
                          field_pointer_index(item, pointer, i), err) < 0) {
            return -1;
        }
    }
    if (request->command.count == 0 || request->command.items[0][0] == '\0') {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s names no program", pointer);
    }
    return 0;
}

/* ---- code ---- */

int run_in_read_code(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    struct run_request *request = target;

    if (!json_object_is_type(value, json_type_string)) {
        return field_wrong_type(pointer, "a string", value, err);
    }
    if (content_in_has_nul(value)) {
        return refuse_nul(pointer, err);
    }
    request->code_size = (size_t)json_object_get_string_len(value);
    request->code = alloc_copy(json_object_get_string(value), request->code_size);
    return 0;
}

static const char *const languages[] = { "python", "bash", "node", NULL };

static void choose_language(void *target, size_t index)
{
    (void)run_language_parse(languages[index], &((struct run_request *)target)->language);
}

/* ---- input and environment ---- */

int run_in_read_stdin(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    struct run_request *request = target;

    return content_in_read(value, pointer, &request->stdin_data, &request->stdin_size, err);
}

static bool env_name_ok(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

    return *name != '\0' && strchr(letters, *name) != NULL && name[strspn(name, all)] == '\0';
}

/* Messages never hold the value: it may be a secret. */
static int read_variable(struct strv *env, const char *name, struct json_object *value,
                         struct err *err)
{
    char pointer[FIELD_POINTER_SIZE];

    (void)field_pointer(pointer, "/env", name);
    if (!env_name_ok(name)) {
        return err_field(err, ERR_BAD_VALUE, pointer,
                         "the name of %s must be letters, digits and _, and not start with a digit",
                         pointer);
    }
    if (text_starts_with(name, "KERND_")) {
        return err_field(err, ERR_BAD_VALUE, pointer, "names that start with KERND_ are reserved");
    }
    if (!json_object_is_type(value, json_type_string)) {
        return field_wrong_type(pointer, "a string", value, err);
    }
    if (content_in_has_nul(value)) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s holds a NUL character", pointer);
    }
    /* With its name it is one string to Linux, and as long as an argument may be. */
    if (strlen(name) + 1 + (size_t)json_object_get_string_len(value) > RUN_IN_ARGUMENT_MAX) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s is above %d bytes", pointer,
                         RUN_IN_ARGUMENT_MAX);
    }
    strv_addf(env, "%s=%s", name, json_object_get_string(value));
    return 0;
}

static int read_env(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    struct run_request *request = target;

    if (!json_object_is_type(value, json_type_object)) {
        return field_wrong_type(pointer, "an object of strings", value, err);
    }
    json_object_object_foreach (value, name, item) {
        if (read_variable(&request->env, name, item, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static void unset_env(void *target)
{
    ((struct options_in *)target)->env_unset = true;
}

static int read_cwd(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    struct run_request *request = target;
    CLEANUP_FREE char *path = NULL;

    if (content_in_path(value, pointer, &path, err) < 0) {
        return -1;
    }
    request->cwd = *path == '/' ? CLEANUP_TAKE(path) : alloc_printf("/workspace/%s", path);
    return 0;
}

/* ---- presentation ---- */

static const char *const encodings[] = { "utf-8", "base64", NULL };

static void choose_encoding(void *target, size_t index)
{
    ((struct run_request *)target)->stdout_base64 = index == 1;
}

/* ---- how it goes ---- */

int run_in_read_id(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    struct run_request *request = target;

    if (!json_object_is_type(value, json_type_string)) {
        return field_wrong_type(pointer, "a string", value, err);
    }
    if (content_in_has_nul(value) || !id_valid(json_object_get_string(value))) {
        return err_field(err, ERR_BAD_VALUE, pointer,
                         "%s must have 1 to 64 of A-Z, a-z, 0-9, \".\", \"_\" and \"-\", the first "
                         "one a letter or a digit",
                         pointer);
    }
    request->id = alloc_text(json_object_get_string(value));
    return 0;
}

static const char *const disconnects[] = { "cancel", "continue", NULL };

static void choose_disconnect(void *target, size_t index)
{
    ((struct run_request *)target)->on_disconnect =
        index == 0 ? RUN_DISCONNECT_CANCEL : RUN_DISCONNECT_CONTINUE;
}

static const char *const isolations[] = { "auto", "boot", NULL };

static void choose_isolation(void *target, size_t index)
{
    ((struct run_request *)target)->boot = index == 1;
}

static void unset_isolation(void *target)
{
    choose_isolation(target, 0);
}

/* ---- the tables ---- */

#define AT(member) .offset = offsetof(struct run_request, member)

static const struct field limit_fields[] = {
    { .name = "timeoutS", .type = FIELD_NUMBER, AT(limits.timeout_s), .min = 0.001, .max = 1e9 },
    { .name = "memoryMb",
      .type = FIELD_WHOLE,
      AT(limits.memory_mb),
      .min = 4,
      .max = LARGEST_WHOLE },
    { .name = "cpus", .type = FIELD_NUMBER, AT(limits.cpus), .min = 0.01, .max = 1e6 },
    { .name = "pids", .type = FIELD_WHOLE, AT(limits.pids), .min = 1, .max = LARGEST_WHOLE },
    { .name = "diskMb", .type = FIELD_WHOLE, AT(limits.disk_mb), .min = 1, .max = LARGEST_WHOLE },
    { .name = "maxOutputBytes",
      .type = FIELD_WHOLE,
      AT(limits.max_output_bytes),
      .min = 1,
      .max = LARGEST_WHOLE },
};
const struct field_table run_in_limit_table = { limit_fields, COUNT_OF(limit_fields), NULL };

static const struct field shared_fields[] = {
    { .name = "env", .type = FIELD_OTHER, .read = read_env, .unset = unset_env },
    { .name = "network", .type = FIELD_BOOL, AT(network) },
    { .name = "isolation",
      .type = FIELD_CHOICE,
      .choices = isolations,
      .choose = choose_isolation,
      .unset = unset_isolation },
    { .name = "trackFiles", .type = FIELD_BOOL, AT(track_files) },
};
const struct field_table run_in_shared_table = { shared_fields, COUNT_OF(shared_fields),
                                                 &run_in_limit_table };

static const struct field call_fields[] = {
    { .name = "stdin", .type = FIELD_OTHER, .read = run_in_read_stdin },
    { .name = "cwd", .type = FIELD_OTHER, .read = read_cwd },
    { .name = "files", .type = FIELD_OTHER, .read = files_in_read },
    { .name = "fetchFiles", .type = FIELD_OTHER, .read = files_in_read_fetch },
    { .name = "secrets", .type = FIELD_OTHER, .read = files_in_read_secrets },
    { .name = "stdoutEncoding",
      .type = FIELD_CHOICE,
      .choices = encodings,
      .choose = choose_encoding },
    { .name = "id", .type = FIELD_OTHER, .read = run_in_read_id },
    { .name = "queueTimeoutS",
      .type = FIELD_NUMBER,
      AT(queue_timeout_s),
      .min = 0.001,
      .max = 1e9 },
    { .name = "interactive", .type = FIELD_BOOL, AT(interactive) },
    { .name = "detach", .type = FIELD_BOOL, AT(detach) },
    { .name = "onDisconnect",
      .type = FIELD_CHOICE,
      .choices = disconnects,
      .choose = choose_disconnect },
};
static const struct field_table session_call_table = { call_fields, COUNT_OF(call_fields),
                                                       &run_in_shared_table };

/* A one-shot is a session of one call: it takes what its box is made of, too. */
static const struct field workspace_fields[] = {
    { .name = "workspace", .type = FIELD_OTHER, .read = options_in_read_workspace },
};
static const struct field_table workspace_table = { workspace_fields, COUNT_OF(workspace_fields),
                                                    &options_in_box_table };
static const struct field_table call_table = { call_fields, COUNT_OF(call_fields),
                                               &workspace_table };

static const struct field command_fields[] = {
    { .name = "command", .type = FIELD_OTHER, .required = true, .read = read_command },
};
static const struct field_table command_table = { command_fields, COUNT_OF(command_fields),
                                                  &call_table };
static const struct field_table session_command_table = { command_fields, COUNT_OF(command_fields),
                                                          &session_call_table };

static const struct field code_fields[] = {
    { .name = "code", .type = FIELD_OTHER, .required = true, .read = run_in_read_code },
    { .name = "language", .type = FIELD_CHOICE, .choices = languages, .choose = choose_language },
};
static const struct field_table code_table = { code_fields, COUNT_OF(code_fields), &call_table };
static const struct field_table session_code_table = { code_fields, COUNT_OF(code_fields),
                                                       &session_call_table };

static size_t bytes_of(const struct strv *texts)
{
    size_t bytes = 0;

    for (size_t i = 0; i < texts->count; i++) {
        bytes += strlen(texts->items[i]) + 1 + sizeof(char *);
    }
    return bytes;
}

static int check_size(const struct run_request *request, struct err *err)
{
    if (bytes_of(&request->command) + bytes_of(&request->env) > RUN_IN_ARGUMENTS_MAX) {
        (void)err_field(
            err, ERR_BAD_VALUE, request->command.count > request->env.count ? "/command" : "/env",
            "arguments and environment together are above %zu bytes", RUN_IN_ARGUMENTS_MAX);
        return err_remedy(err, "send large inputs as files (\"files\") or through \"stdin\"");
    }
    return 0;
}

static int read_alone(struct options_in *in, struct json_object *object, struct err *err)
{
    const struct field_table *table = in->run.kind == RUN_COMMAND ? &command_table : &code_table;

    return field_read(table, object, in, err) < 0 ? -1 : options_in_check(in, err);
}

/* What the body does not name comes from the session. */
static int read_in_session(struct options_in *in, struct json_object *object,
                           const struct run_in_base *base, struct err *err)
{
    const struct field_table *table =
        in->run.kind == RUN_COMMAND ? &session_command_table : &session_code_table;
    struct options_in fresh;
    int result;

    options_in_init(&fresh, base);
    options_apply(base->session, &in->run);
    strv_done(&in->run.env);
    result = field_read_over(table, object, in, &fresh, err);
    options_in_done(&fresh);
    if (result == 0 && !in->env_unset) {
        guest_env_inherit(&in->run.env, &base->session->env);
    }
    return result;
}

struct run_request *run_in_read(enum run_kind kind, struct json_object *object,
                                const struct run_in_base *base, struct err *err)
{
    struct run_request *request = NULL;
    struct options_in in;

    options_in_init(&in, base);
    in.run.kind = kind;
    if ((base->session != NULL ? read_in_session(&in, object, base, err)
                               : read_alone(&in, object, err)) == 0 &&
        check_size(&in.run, err) == 0) {
        request = options_in_take_request(&in);
    }
    options_in_done(&in);
    return request;
}

struct run_request *run_in_decode(enum run_kind kind, const char *body, size_t size,
                                  const struct run_in_base *base, struct err *err)
{
    CLEANUP_JSON struct json_object *object = json_in_parse(body, size, err);

    return object == NULL ? NULL : run_in_read(kind, object, base, err);
}
