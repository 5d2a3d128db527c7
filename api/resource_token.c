/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make, list and revoke tokens.
 * Owns: nothing.
 * Threads: handlers on the quick lane.
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/resource_token.h"

#include <stdlib.h>
#include <string.h>

#include "api/content_in.h"
#include "api/field.h"
#include "api/json_in.h"
#include "api/resource.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/sandbox/tokens.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct wanted {
    bool full;
    char *name;
    double lifetime_s;
};

static const char *const scopes[] = { "run", "full", NULL };

static void choose_scope(void *target, size_t index)
{
    ((struct wanted *)target)->full = index == 1;
}

static int read_name(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    if (!json_object_is_type(value, json_type_string)) {
        return field_wrong_type(pointer, "a string", value, err);
    }
    if (content_in_has_nul(value)) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s holds a NUL character", pointer);
    }
    ((struct wanted *)target)->name = alloc_text(json_object_get_string(value));
    return 0;
}

static const struct field token_fields[] = {
    { .name = "scope",
      .type = FIELD_CHOICE,
      .required = true,
      .choices = scopes,
      .choose = choose_scope },
    { .name = "name", .type = FIELD_OTHER, .read = read_name },
    { .name = "expiresInS",
      .type = FIELD_NUMBER,
      .offset = offsetof(struct wanted, lifetime_s),
      .min = 1,
      .max = 1e9 },
};
static const struct field_table token_table = { token_fields, COUNT_OF(token_fields), NULL };

static void write_members(struct json_out *json, const struct tokens_view *view)
{
    json_out_key(json, "id");
    json_out_string(json, view->id);
    json_out_key(json, "name");
    json_out_string(json, view->name[0] != '\0' ? view->name : NULL);
    json_out_key(json, "scope");
    json_out_string(json, scopes[view->full ? 1 : 0]);
    json_out_key(json, "createdAt");
    json_out_time(json, view->created_ms);
    json_out_key(json, "expiresAt");
    json_out_time(json, view->expires_ms);
}

static int make(const struct api_call *call, struct tokens_view *ret_view,
                char ret_text[static TOKENS_TEXT_SIZE], struct err *err)
{
    CLEANUP_JSON struct json_object *object = json_in_parse(call->body, call->body_size, err);
    struct wanted wanted = { .name = NULL };
    int result = -1;

    if (object != NULL && field_read(&token_table, object, &wanted, err) == 0) {
        result = tokens_make(call->api->sandbox,
                             &(struct tokens_wish){ .full = wanted.full,
                                                    .name = wanted.name,
                                                    .lifetime_s = wanted.lifetime_s },
                             ret_view, ret_text, err);
    }
    free(wanted.name);
    return result;
}

void resource_token_make(struct api_call *call)
{
    char text[TOKENS_TEXT_SIZE];
    struct tokens_view view;
    struct err err = ERR_INIT;
    struct json_out json;

    if (resource_accepts_json(call, &err) < 0 || resource_no_query(call, &err) < 0 ||
        make(call, &view, text, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 201, &json);
    json_out_open(&json, '{');
    write_members(&json, &view);
    json_out_key(&json, "token");
    json_out_string(&json, text);
    json_out_close(&json, '}');
    explicit_bzero(text, sizeof(text));
    resource_finish(call, &json);
}

void resource_token_list(struct api_call *call)
{
    CLEANUP_FREE struct tokens_view *views = NULL;
    struct err err = ERR_INIT;
    struct json_out json;
    size_t count = 0;

    if (resource_accepts_json(call, &err) < 0 || resource_no_query(call, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    views = tokens_list(call->api->sandbox, &count);
    resource_reply(call, 200, &json);
    json_out_open(&json, '{');
    json_out_key(&json, "items");
    json_out_open(&json, '[');
    for (size_t i = 0; i < count; i++) {
        json_out_open(&json, '{');
        write_members(&json, &views[i]);
        json_out_close(&json, '}');
    }
    json_out_close(&json, ']');
    json_out_close(&json, '}');
    resource_finish(call, &json);
}

void resource_token_revoke(struct api_call *call)
{
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];

    if (resource_no_query(call, &err) < 0 ||
        resource_id(call, "id", ERR_TOKEN_NOT_FOUND, id, &err) < 0 ||
        tokens_revoke(call->api->sandbox, id, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_finish_empty(call);
}
