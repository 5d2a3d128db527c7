/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: tell of images, and take them in.
 * Owns: nothing.
 * Threads: handlers on the quick lane; the work on the lane of archives.
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/resource_image.h"

#include <json.h>
#include <string.h>

#include "api/away.h"
#include "api/field.h"
#include "api/grammar.h"
#include "api/json_in.h"
#include "api/options_in.h"
#include "api/resource.h"
#include "api/run_in.h"
#include "api/ticket.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/sandbox/sandbox.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define LIST_MAX ((size_t)1 << 20)
#define PULL_TIMEOUT_S 600.0

/* A member of one of kern's rows; NULL: not there, or of another type. */
static struct json_object *member(struct json_object *row, const char *name, enum json_type type)
{
    struct json_object *value = NULL;

    return json_object_is_type(row, json_type_object) &&
                   json_object_object_get_ex(row, name, &value) != 0 &&
                   json_object_is_type(value, type)
               ? value
               : NULL;
}

static void write_image(struct json_out *json, struct json_object *row)
{
    struct json_object *name = member(row, "image", json_type_string);
    struct json_object *bytes = member(row, "size_bytes", json_type_int);
    struct json_object *since = member(row, "pulled", json_type_int);

    if (name == NULL) {
        return;
    }
    json_out_open(json, '{');
    json_out_key(json, "name");
    json_out_text(json, json_object_get_string(name), (size_t)json_object_get_string_len(name));
    json_out_key(json, "bytes");
    if (bytes == NULL || json_object_get_int64(bytes) < 0) {
        json_out_null(json);
    } else {
        json_out_count(json, (uint64_t)json_object_get_int64(bytes));
    }
    json_out_key(json, "since");
    if (since == NULL) {
        json_out_null(json);
    } else {
        json_out_time(json, json_object_get_int64(since) * 1000);
    }
    json_out_close(json, '}');
}

static void work_list(struct api_call *call)
{
    CLEANUP_BUF struct buf said = BUF_INIT(LIST_MAX);
    CLEANUP_JSON struct json_object *rows = NULL;
    struct err err = ERR_INIT;
    struct json_out json;

    if (resource_no_query(call, &err) < 0 ||
        sandbox_images_list(call->api->sandbox, &said, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    rows = json_tokener_parse(said.size == 0 ? "[]" : said.data);
    if (!json_object_is_type(rows, json_type_array)) {
        (void)err_set(&err, ERR_IO, 0, "kern's list of images can't be read");
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    json_out_open(&json, '{');
    json_out_key(&json, "items");
    json_out_open(&json, '[');
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        write_image(&json, json_object_array_get_idx(rows, i));
    }
    json_out_close(&json, ']');
    json_out_close(&json, '}');
    resource_finish(call, &json);
}

void resource_image_list(struct api_call *call)
{
    away_run(call, work_list);
}

static void work_load(struct api_call *call)
{
    CLEANUP_STRV struct strv names = { 0 };
    struct err err = ERR_INIT;
    struct json_out json;

    if (resource_accepts_json(call, &err) < 0 || resource_no_query(call, &err) < 0 ||
        sandbox_images_load(call->api->sandbox, call->body_file, &names, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    json_out_open(&json, '{');
    json_out_key(&json, "loaded");
    json_out_open(&json, '[');
    for (size_t i = 0; i < names.count; i++) {
        json_out_text(&json, names.items[i], strlen(names.items[i]));
    }
    json_out_close(&json, ']');
    json_out_close(&json, '}');
    resource_finish(call, &json);
}

void resource_image_load(struct api_call *call)
{
    away_run(call, work_load);
}

/* ---- pull ---- */

static int read_name(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    struct run_request *request = target;

    if (options_in_text(value, pointer, &grammar_image, err) < 0) {
        return -1;
    }
    request->choice.image = alloc_text(json_object_get_string(value));
    return 0;
}

static const struct field pull_fields[] = {
    { .name = "image", .type = FIELD_OTHER, .required = true, .read = read_name },
    { .name = "timeoutS",
      .type = FIELD_NUMBER,
      .offset = offsetof(struct run_request, limits.timeout_s),
      .min = 0.001,
      .max = 1e9 },
    { .name = "id", .type = FIELD_OTHER, .read = run_in_read_id },
};
static const struct field_table pull_table = { pull_fields, COUNT_OF(pull_fields), NULL };

/* It has no box: of the limits of a call only time and output are its own. */
static struct run_request *new_pull(const struct sandbox *sandbox)
{
    struct run_request *request = run_request_new();
    const double longest = sandbox_maxima(sandbox)->timeout_s;

    request->kind = RUN_PULL;
    request->track_files = false;
    request->limits.max_output_bytes = sandbox_defaults(sandbox)->max_output_bytes;
    request->limits.timeout_s = longest < PULL_TIMEOUT_S ? longest : PULL_TIMEOUT_S;
    return request;
}

void resource_image_pull(struct api_call *call)
{
    struct run_request *request = new_pull(call->api->sandbox);
    CLEANUP_JSON struct json_object *object = NULL;
    struct err err = ERR_INIT;

    if (resource_no_query(call, &err) < 0 ||
        (object = json_in_parse(call->body, call->body_size, &err)) == NULL ||
        field_read(&pull_table, object, request, &err) < 0) {
        run_request_free(request);
        resource_fail(call, &err);
        return;
    }
    ticket_submit(call, request);
}
