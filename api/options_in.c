/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read the options of boxes.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/options_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content_in.h"
#include "api/engine_in.h"
#include "api/field.h"
#include "api/grammar.h"
#include "api/run_in.h"
#include "api/tag_in.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/container.h"
#include "lib/base/text.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

void options_in_init(struct options_in *in, const struct run_in_base *base)
{
    *in = (struct options_in){ .engine = base->engine == NULL ? ENGINE_IN_PLAIN : base->engine,
                               .other_engine = base->other_engine,
                               .narrow = base->narrow };
    in->run.limits = *base->defaults;
    in->run.track_files = true;
    options_init(&in->session, base->defaults);
}

void options_in_done(struct options_in *in)
{
    run_request_done(&in->run);
    options_done(&in->session);
    free(in->id);
    in->run = (struct run_request){ .kind = RUN_COMMAND };
    in->id = NULL;
}

/* ---- one text, lists of texts ---- */

int options_in_text(struct json_object *value, const char *pointer, const struct grammar_rule *rule,
                    struct err *err)
{
    if (!json_object_is_type(value, json_type_string)) {
        return field_wrong_type(pointer, "a string", value, err);
    }
    if (content_in_has_nul(value) || !rule->fits(json_object_get_string(value))) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s must be %s", pointer, rule->words);
    }
    return 0;
}

int options_in_texts(struct json_object *value, const char *pointer,
                     const struct grammar_rule *rule, struct strv *list, struct err *err)
{
    char item[FIELD_POINTER_SIZE];

    if (!json_object_is_type(value, json_type_array)) {
        (void)field_wrong_type(pointer, "an array of strings", value, err);
        return json_object_is_type(value, json_type_string)
                   ? err_remedy(err, "put the text into an array, also when it is the only one")
                   : -1;
    }
    for (size_t i = 0; i < json_object_array_length(value); i++) {
        struct json_object *text = json_object_array_get_idx(value, i);

        if (options_in_text(text, field_pointer_index(item, pointer, i), rule, err) < 0) {
            return -1;
        }
        strv_add(list, json_object_get_string(text));
    }
    return 0;
}

/* ---- what the box is made of ---- */

static int read_environment(void *target, struct json_object *value, const char *pointer,
                            struct err *err)
{
    return tag_in_id(value, pointer, &((struct options_in *)target)->run.environment, err);
}

int options_in_read_preload(void *target, struct json_object *value, const char *pointer,
                            struct err *err)
{
    struct strv *preload = &((struct options_in *)target)->run.preload;

    if (options_in_texts(value, pointer, &grammar_module, preload, err) < 0) {
        return -1;
    }
    if (json_object_array_length(value) > OPTIONS_IN_PRELOAD_MAX) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s names more than %d modules", pointer,
                         OPTIONS_IN_PRELOAD_MAX);
    }
    return 0;
}

/* ---- host directories ---- */

static int check_host_path(struct json_object *value, const char *pointer, struct err *err)
{
    if (!json_object_is_type(value, json_type_string)) {
        return field_wrong_type(pointer, "a string", value, err);
    }
    if (content_in_has_nul(value)) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s holds a NUL character", pointer);
    }
    return 0;
}

static int read_mode(struct json_object *value, const char *pointer, bool *ret_writable,
                     struct err *err)
{
    const char *text = json_object_get_string(value);

    if (!json_object_is_type(value, json_type_string) ||
        (!text_equal(text, "ro") && !text_equal(text, "rw"))) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s must be \"ro\" or \"rw\"", pointer);
    }
    *ret_writable = text_equal(text, "rw");
    return 0;
}

/* source: "/target" is read-only, as is source: ["/target", "ro"]. */
static int read_mount(struct run_request *request, const char *source, struct json_object *value,
                      struct err *err)
{
    char pointer[FIELD_POINTER_SIZE];
    char item[FIELD_POINTER_SIZE];
    struct json_object *target = value;
    bool writable = false;

    (void)field_pointer(pointer, "/mounts", source);
    if (json_object_is_type(value, json_type_array)) {
        if (json_object_array_length(value) != 2) {
            return err_field(err, ERR_BAD_VALUE, pointer,
                             "%s must be a target or [target, \"ro\" or \"rw\"]", pointer);
        }
        target = json_object_array_get_idx(value, 0);
        if (read_mode(json_object_array_get_idx(value, 1), field_pointer_index(item, pointer, 1),
                      &writable, err) < 0) {
            return -1;
        }
    }
    if (check_host_path(target, pointer, err) < 0) {
        return -1;
    }
    run_mount_add(&request->mounts, &request->mount_count, source, json_object_get_string(target),
                  writable);
    return 0;
}

static int read_mounts(void *target, struct json_object *value, const char *pointer,
                       struct err *err)
{
    struct options_in *in = target;

    if (!json_object_is_type(value, json_type_object)) {
        return field_wrong_type(pointer, "an object from source to target", value, err);
    }
    if (json_object_object_length(value) > OPTIONS_IN_MOUNTS_MAX) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s has more than %d members", pointer,
                         OPTIONS_IN_MOUNTS_MAX);
    }
    json_object_object_foreach (value, source, item) {
        if (read_mount(&in->run, source, item, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int options_in_read_workspace(void *target, struct json_object *value, const char *pointer,
                              struct err *err)
{
    struct options_in *in = target;

    if (check_host_path(value, pointer, err) < 0) {
        return -1;
    }
    in->run.workspace = alloc_text(json_object_get_string(value));
    return 0;
}

/* ---- the table ---- */

static const struct field box_fields[] = {
    { .name = "environment", .type = FIELD_OTHER, .read = read_environment },
    { .name = "preload", .type = FIELD_OTHER, .read = options_in_read_preload },
    { .name = "mounts", .type = FIELD_OTHER, .read = read_mounts },
    { .name = "requireLimits",
      .type = FIELD_BOOL,
      .offset = offsetof(struct options_in, run.require_limits) },
};
const struct field_table options_in_box_table = { box_fields, COUNT_OF(box_fields),
                                                  &engine_in_table };

int options_in_check(struct options_in *in, struct err *err)
{
    return engine_in_check(in, err);
}

struct run_request *options_in_take_request(struct options_in *in)
{
    struct run_request *request = run_request_new();

    *request = in->run;
    in->run = (struct run_request){ .kind = RUN_COMMAND };
    return request;
}

void options_in_take_session(struct options_in *in, struct options *ret_options)
{
    struct run_request *run = &in->run;
    struct options options = in->session;

    options.limits = run->limits;
    options.network = run->network;
    options.boot = run->boot;
    options.track_files = run->track_files;
    options.require_limits = run->require_limits;
    options.choice = run->choice;
    run->choice = (struct choice){ .engine = NULL };
    options.env = run->env;
    options.mounts = run->mounts;
    options.mount_count = run->mount_count;
    options.workspace = CLEANUP_TAKE(run->workspace);
    options.environment = CLEANUP_TAKE(run->environment);
    options.preload = run->preload;
    run->preload = (struct strv){ 0 };
    run->env = (struct strv){ 0 };
    run->mounts = NULL;
    run->mount_count = 0;
    in->session = (struct options){ .env = { 0 } };
    *ret_options = options;
}
