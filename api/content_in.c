/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read texts, bytes and paths from request bodies.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, json-c.
 */
#include "api/content_in.h"

#include <string.h>

#include "api/field.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/text.h"

#define PATH_BYTES 4095 /* PATH_MAX of Linux, less its NUL */

static size_t text_size(struct json_object *text)
{
    return (size_t)json_object_get_string_len(text);
}

bool content_in_has_nul(struct json_object *text)
{
    return memchr(json_object_get_string(text), '\0', text_size(text)) != NULL;
}

static int decode(struct json_object *object, const char *pointer, struct buf *out, struct err *err)
{
    struct json_object *text = json_object_object_get(object, "base64");

    if (text == NULL || json_object_object_length(object) != 1 ||
        !json_object_is_type(text, json_type_string)) {
        return err_field(err, ERR_BAD_VALUE, pointer,
                         "%s must be a string or {\"base64\": \"...\"}", pointer);
    }
    if (text_base64_decode(out, json_object_get_string(text), text_size(text)) < 0) {
        return err_field(
            err, ERR_BAD_VALUE, pointer,
            "the base64 of %s is malformed (standard alphabet, with padding, no blanks)", pointer);
    }
    return 0;
}

int content_in_read(struct json_object *value, const char *pointer, char **ret_data,
                    size_t *ret_size, struct err *err)
{
    CLEANUP_BUF struct buf bytes = BUF_INIT(SIZE_MAX / 2);

    if (json_object_is_type(value, json_type_string)) {
        *ret_size = text_size(value);
        *ret_data = alloc_copy(json_object_get_string(value), *ret_size);
        return 0;
    }
    if (!json_object_is_type(value, json_type_object)) {
        return field_wrong_type(pointer, "a string or {\"base64\": \"...\"}", value, err);
    }
    if (decode(value, pointer, &bytes, err) < 0) {
        return -1;
    }
    *ret_data = buf_take(&bytes, ret_size);
    return 0;
}

int content_in_path(struct json_object *value, const char *pointer, char **ret_path,
                    struct err *err)
{
    if (!json_object_is_type(value, json_type_string)) {
        return field_wrong_type(pointer, "a string", value, err);
    }
    if (text_size(value) == 0 || text_size(value) > PATH_BYTES || content_in_has_nul(value)) {
        return err_field(err, ERR_BAD_PATH, pointer,
                         "%s must be a path of 1 to %d bytes without NUL", pointer, PATH_BYTES);
    }
    *ret_path = alloc_text(json_object_get_string(value));
    return 0;
}
