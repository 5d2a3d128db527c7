/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the tables of the fields of sessions.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/session_in.h"

#include <stdlib.h>
#include <string.h>

#include "api/content_in.h"
#include "api/field.h"
#include "api/json_in.h"
#include "api/options_in.h"
#include "api/tag_in.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/container.h"
#include "lib/base/text.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define SESSION(member) .offset = offsetof(struct options_in, session.member)

/* The object that a body is; an empty body is an empty object. NULL with err. */
static struct json_object *parse(const char *body, size_t size, struct err *err)
{
    return size == 0 ? json_in_parse("{}", 2, err) : json_in_parse(body, size, err);
}

/* ---- single fields ---- */

static int read_id(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    return tag_in_id(value, pointer, &((struct options_in *)target)->id, err);
}

int session_in_read_line(struct json_object *value, const char *pointer, char **ret_text,
                         struct err *err)
{
    const char *text = json_object_get_string(value);

    if (!json_object_is_type(value, json_type_string)) {
        return field_wrong_type(pointer, "a string", value, err);
    }
    if (content_in_has_nul(value)) {
        return err_field(err, ERR_BAD_JSON, pointer, "%s holds a NUL character", pointer);
    }
    if (strlen(text) > SESSION_IN_SETUP_MAX || text[strspn(text, " \t\r\n")] == '\0') {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s must be a shell line of 1 to %d bytes",
                         pointer, SESSION_IN_SETUP_MAX);
    }
    *ret_text = alloc_text(text);
    return 0;
}

static int read_setup(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    return session_in_read_line(value, pointer, &((struct options_in *)target)->session.setup, err);
}

static int read_labels(void *target, struct json_object *value, const char *pointer,
                       struct err *err)
{
    return tag_in_labels(value, pointer, &((struct options_in *)target)->session.labels, err);
}

static int read_snapshot(void *target, struct json_object *value, const char *pointer,
                         struct err *err)
{
    return tag_in_id(value, pointer, &((struct options_in *)target)->session.snapshot, err);
}

static void unset_labels(void *target)
{
    strv_done(&((struct options_in *)target)->session.labels);
}

/* How many spares; unlike a number of a table it must be told from "not said". */
static int read_prewarm(void *target, struct json_object *value, const char *pointer,
                        struct err *err)
{
    struct options *options = &((struct options_in *)target)->session;
    double number = json_object_get_double(value);

    if (!json_object_is_type(value, json_type_int)) {
        return field_wrong_type(pointer, "a whole number", value, err);
    }
    if (number < 0 || number > OPTIONS_IN_PREWARM_MAX) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s must be 0 to %d", pointer,
                         OPTIONS_IN_PREWARM_MAX);
    }
    options->prewarm = (uint64_t)number;
    options->prewarm_set = true;
    return 0;
}

/* ---- create and change ---- */

static const struct field keep_fields[] = {
    { .name = "labels", .type = FIELD_OTHER, .read = read_labels, .unset = unset_labels },
    { .name = "idleTimeoutS",
      .type = FIELD_NUMBER,
      SESSION(idle_timeout_s),
      .min = 0.001,
      .max = 1e9 },
    { .name = "ttlS", .type = FIELD_NUMBER, SESSION(ttl_s), .min = 0.001, .max = 1e9 },
};
static const struct field_table patch_table = { keep_fields, COUNT_OF(keep_fields),
                                                &run_in_shared_table };
static const struct field_table keep_table = { keep_fields, COUNT_OF(keep_fields),
                                               &options_in_box_table };

static const struct field create_fields[] = {
    { .name = "id", .type = FIELD_OTHER, .read = read_id },
    { .name = "setup", .type = FIELD_OTHER, .read = read_setup },
    { .name = "snapshotId", .type = FIELD_OTHER, .read = read_snapshot },
    { .name = "workspace", .type = FIELD_OTHER, .read = options_in_read_workspace },
    { .name = "depsReadonly", .type = FIELD_BOOL, SESSION(deps_readonly) },
    { .name = "prewarm", .type = FIELD_OTHER, .read = read_prewarm },
};
static const struct field_table create_table = { create_fields, COUNT_OF(create_fields),
                                                 &keep_table };

/* The files of a directory of the host are not replaced by the way. */
static int check_source(const struct options_in *in, struct err *err)
{
    return in->session.snapshot == NULL || in->run.workspace == NULL
               ? 0
               : err_field(err, ERR_BAD_VALUE, "/snapshotId",
                           "/snapshotId and /workspace can't both be given");
}

int session_in_create(const char *body, size_t size, const struct run_in_base *base, char **ret_id,
                      struct options *ret_options, struct err *err)
{
    CLEANUP_JSON struct json_object *object = parse(body, size, err);
    struct options_in in;
    int result = -1;

    if (object == NULL) {
        return -1;
    }
    options_in_init(&in, base);
    if (field_read(&create_table, object, &in, err) == 0 && options_in_check(&in, err) == 0 &&
        check_source(&in, err) == 0) {
        *ret_id = CLEANUP_TAKE(in.id);
        options_in_take_session(&in, ret_options);
        result = 0;
    }
    options_in_done(&in);
    return result;
}

/* The session's own options, ready to be read over. */
static void fill(struct options_in *in, const struct options *session)
{
    options_apply(session, &in->run);
    options_done(&in->session);
    options_copy(&in->session, session);
    /* What is read as a call's is there now, and taken from there in the end. */
    choice_done(&in->session.choice);
    strv_done(&in->session.env);
    run_mounts_free(in->session.mounts, in->session.mount_count);
    in->session.mounts = NULL;
    in->session.mount_count = 0;
    free(CLEANUP_TAKE(in->session.environment));
    strv_done(&in->session.preload);
    in->run.workspace = CLEANUP_TAKE(in->session.workspace);
}

int session_in_patch(const char *body, size_t size, const struct run_in_base *base,
                     struct options *ret_options, struct err *err)
{
    CLEANUP_JSON struct json_object *object = parse(body, size, err);
    struct options_in fresh;
    struct options_in in;
    int result;

    if (object == NULL) {
        return -1;
    }
    options_in_init(&fresh, base);
    options_in_init(&in, base);
    fill(&in, base->session);
    if (json_object_object_get(object, "env") != NULL) {
        strv_done(&in.run.env); /* replaced as a whole, as labels are */
    }
    result = field_read_over(&patch_table, object, &in, &fresh, err);
    if (in.env_unset) {
        strv_done(&in.run.env);
    }
    if (result == 0) {
        options_in_take_session(&in, ret_options);
    }
    options_in_done(&in);
    options_in_done(&fresh);
    return result;
}

/* ---- fork, setup ---- */

/* A target of one text. */
struct one_text {
    char *text;
};

static int read_fork_id(void *target, struct json_object *value, const char *pointer,
                        struct err *err)
{
    return tag_in_id(value, pointer, &((struct one_text *)target)->text, err);
}

static int read_setup_command(void *target, struct json_object *value, const char *pointer,
                              struct err *err)
{
    return session_in_read_line(value, pointer, &((struct one_text *)target)->text, err);
}

static const struct field fork_fields[] = {
    { .name = "id", .type = FIELD_OTHER, .read = read_fork_id },
};
static const struct field_table fork_table = { fork_fields, COUNT_OF(fork_fields), NULL };

static const struct field setup_fields[] = {
    { .name = "command", .type = FIELD_OTHER, .required = true, .read = read_setup_command },
};
static const struct field_table setup_table = { setup_fields, COUNT_OF(setup_fields), NULL };

static int read_one(const struct field_table *table, const char *body, size_t size, char **ret_text,
                    struct err *err)
{
    CLEANUP_JSON struct json_object *object = parse(body, size, err);
    struct one_text one = { .text = NULL };

    if (object == NULL || field_read(table, object, &one, err) < 0) {
        free(one.text);
        return -1;
    }
    *ret_text = one.text;
    return 0;
}

int session_in_fork(const char *body, size_t size, char **ret_id, struct err *err)
{
    return read_one(&fork_table, body, size, ret_id, err);
}

int session_in_setup(const char *body, size_t size, char **ret_command, struct err *err)
{
    return read_one(&setup_table, body, size, ret_command, err);
}

/* ---- moving a file ---- */

static int read_from(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    return content_in_path(value, pointer, &((struct session_in_move *)target)->from, err);
}

static int read_to(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    return content_in_path(value, pointer, &((struct session_in_move *)target)->to, err);
}

static const struct field move_fields[] = {
    { .name = "from", .type = FIELD_OTHER, .required = true, .read = read_from },
    { .name = "to", .type = FIELD_OTHER, .required = true, .read = read_to },
    { .name = "overwrite",
      .type = FIELD_BOOL,
      .offset = offsetof(struct session_in_move, overwrite) },
};
static const struct field_table move_table = { move_fields, COUNT_OF(move_fields), NULL };

void session_in_move_done(struct session_in_move *move)
{
    free(move->from);
    free(move->to);
    *move = (struct session_in_move){ .from = NULL };
}

int session_in_move(const char *body, size_t size, struct session_in_move *ret_move,
                    struct err *err)
{
    CLEANUP_JSON struct json_object *object = json_in_parse(body, size, err);
    struct session_in_move move = { .from = NULL };

    if (object == NULL || field_read(&move_table, object, &move, err) < 0) {
        session_in_move_done(&move);
        return -1;
    }
    *ret_move = move;
    return 0;
}
