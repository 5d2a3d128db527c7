/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read the API's own answers.
 * Owns: nothing.
 * Threads: any; a tree stays on one.
 * May include: lib/base, json-c.
 */
#include "api/json_view.h"

#include <string.h>

#include "api/json_in.h"

struct json_object *json_view_parse(const char *text, size_t size)
{
    return json_in_value(text, size, NULL);
}

void json_view_free(struct json_object *tree)
{
    (void)json_object_put(tree);
}

void json_view_clean(struct json_object **tree)
{
    json_view_free(*tree);
}

struct json_object *json_view_at(struct json_object *value, const char *path)
{
    while (value != NULL && *path != '\0') {
        char name[64];
        const size_t length = strcspn(path, ".");
        struct json_object *member = NULL;

        if (length >= sizeof(name) || !json_object_is_type(value, json_type_object)) {
            return NULL;
        }
        memcpy(name, path, length);
        name[length] = '\0';
        (void)json_object_object_get_ex(value, name, &member);
        value = member;
        path += path[length] == '.' ? length + 1 : length;
    }
    return value;
}

const char *json_view_bytes(struct json_object *value, const char *path, size_t *ret_size)
{
    struct json_object *found = json_view_at(value, path);

    if (!json_object_is_type(found, json_type_string)) {
        return NULL;
    }
    *ret_size = (size_t)json_object_get_string_len(found);
    return json_object_get_string(found);
}

const char *json_view_text(struct json_object *value, const char *path)
{
    size_t size = 0;

    return json_view_bytes(value, path, &size);
}

int64_t json_view_whole(struct json_object *value, const char *path, int64_t otherwise)
{
    struct json_object *found = json_view_at(value, path);

    return json_object_is_type(found, json_type_int) ? json_object_get_int64(found) : otherwise;
}

double json_view_number(struct json_object *value, const char *path, double otherwise)
{
    struct json_object *found = json_view_at(value, path);

    return json_object_is_type(found, json_type_int) || json_object_is_type(found, json_type_double)
               ? json_object_get_double(found)
               : otherwise;
}

bool json_view_true(struct json_object *value, const char *path)
{
    struct json_object *found = json_view_at(value, path);

    return json_object_is_type(found, json_type_boolean) && json_object_get_boolean(found);
}

size_t json_view_count(struct json_object *value, const char *path)
{
    struct json_object *found = json_view_at(value, path);

    return json_object_is_type(found, json_type_array) ? json_object_array_length(found) : 0;
}

struct json_object *json_view_item(struct json_object *value, const char *path, size_t index)
{
    return index < json_view_count(value, path)
               ? json_object_array_get_idx(json_view_at(value, path), index)
               : NULL;
}

const char *json_view_member(struct json_object *value, size_t index,
                             struct json_object **ret_member)
{
    size_t at = 0;

    if (!json_object_is_type(value, json_type_object)) {
        return NULL;
    }
    json_object_object_foreach (value, name, member) {
        if (at++ == index) {
            *ret_member = member;
            return name;
        }
    }
    return NULL;
}

void json_view_print(struct json_object *value, struct buf *out)
{
    const int flags = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE;

    (void)buf_append_text(out, json_object_to_json_string_ext(value, flags));
}
