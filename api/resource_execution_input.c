/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: standard input and signals for a running execution.
 * Owns: nothing.
 * Threads: handlers on the quick lane.
 * May include: lib/base, lib/sandbox, json-c.
 */
#include <signal.h>
#include <string.h>

#include "api/content_in.h"
#include "api/decode.h"
#include "api/field.h"
#include "api/json_in.h"
#include "api/resource.h"
#include "api/resource_execution.h"
#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "lib/sandbox/executions.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define INPUT_MAX ((size_t)1 << 20)
#define SIGNAL_LAST 31 /* the real-time ones have no names that all systems share */

/* The live execution that the path names: a reference, or NULL with err. */
static struct execution *find(const struct api_call *call, struct err *err)
{
    const struct session_actor actor = resource_actor(call);
    char id[RESOURCE_ID_SIZE];

    return resource_id(call, "id", ERR_EXECUTION_NOT_FOUND, id, err) < 0
               ? NULL
               : executions_find_live(call->api->sandbox, &actor, id, err);
}

static void finish(struct api_call *call, int result, const struct err *err)
{
    if (result < 0) {
        resource_fail(call, err);
    } else {
        resource_finish_empty(call);
    }
}

/* ---- standard input ---- */

static int read_input(const struct api_call *call, struct buf *input, struct err *err)
{
    if (call->body_file < 0) {
        return 0;
    }
    if (fd_read_to_end(call->body_file, input, err) < 0) {
        return err_remedy(err, "send it in pieces of at most %zu bytes", INPUT_MAX);
    }
    return 0;
}

static int write_input(const struct api_call *call, bool end, struct err *err)
{
    CLEANUP_BUF struct buf input = BUF_INIT(INPUT_MAX);
    struct execution *execution;
    int result;

    if (read_input(call, &input, err) < 0) {
        return -1;
    }
    execution = find(call, err);
    if (execution == NULL) {
        return -1;
    }
    result = execution_write_stdin(execution, input.data, input.size, end, err);
    execution_unref(execution);
    return result;
}

void resource_execution_input_stdin(struct api_call *call)
{
    static const char *const known[] = { "eof", NULL };
    struct decode_query query;
    struct err err = ERR_INIT;
    bool end = false;
    int result = -1;

    if (decode_query(call->query, known, &query, &err) == 0 &&
        decode_query_bool(&query, "eof", &end, &err) == 0) {
        result = write_input(call, end, &err);
    }
    finish(call, result, &err);
}

/* ---- signals ---- */

struct signal_body {
    int number;
    bool all;
};

/* "INT" or "SIGINT". 0: there is none by that name. */
static int signal_number(const char *name)
{
    if (text_starts_with(name, "SIG")) {
        name += 3;
    }
    for (int number = 1; number <= SIGNAL_LAST; number++) {
        if (text_equal(sigabbrev_np(number), name)) {
            return number;
        }
    }
    return 0;
}

static int read_signal(void *target, struct json_object *value, const char *pointer,
                       struct err *err)
{
    struct signal_body *body = target;

    if (!json_object_is_type(value, json_type_string)) {
        return field_wrong_type(pointer, "the name of a signal", value, err);
    }
    body->number = content_in_has_nul(value) ? 0 : signal_number(json_object_get_string(value));
    if (body->number == 0) {
        (void)err_field(err, ERR_BAD_VALUE, pointer, "%s is not the name of a signal", pointer);
        return err_remedy(err, "INT, TERM, HUP, USR1, KILL ...");
    }
    return 0;
}

static const struct field signal_fields[] = {
    { .name = "signal", .type = FIELD_OTHER, .required = true, .read = read_signal },
    { .name = "all", .type = FIELD_BOOL, .offset = offsetof(struct signal_body, all) },
};
static const struct field_table signal_table = { signal_fields, COUNT_OF(signal_fields), NULL };

static int send_signal(const struct api_call *call, struct err *err)
{
    CLEANUP_JSON struct json_object *object = json_in_parse(call->body, call->body_size, err);
    struct signal_body body = { .number = 0 };
    struct execution *execution;
    int result;

    if (object == NULL || field_read(&signal_table, object, &body, err) < 0) {
        return -1;
    }
    execution = find(call, err);
    if (execution == NULL) {
        return -1;
    }
    result = execution_signal(execution, body.number, body.all, err);
    execution_unref(execution);
    return result;
}

void resource_execution_input_signal(struct api_call *call)
{
    struct err err = ERR_INIT;
    int result = -1;

    if (resource_no_query(call, &err) == 0) {
        result = send_signal(call, &err);
    }
    finish(call, result, &err);
}
