/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read what callers call their things.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, json-c.
 */
#include "api/tag_in.h"

#include "api/content_in.h"
#include "api/field.h"
#include "api/grammar.h"
#include "api/options_in.h"
#include "lib/base/alloc.h"
#include "lib/base/id.h"

int tag_in_id(struct json_object *value, const char *pointer, char **ret_id, struct err *err)
{
    if (!json_object_is_type(value, json_type_string)) {
        return field_wrong_type(pointer, "a string", value, err);
    }
    if (content_in_has_nul(value) || !id_valid(json_object_get_string(value))) {
        return err_field(err, ERR_BAD_VALUE, pointer,
                         "%s must be 1 to 64 of letters, digits, '.', '_' and '-', and start with "
                         "a letter or digit",
                         pointer);
    }
    *ret_id = alloc_text(json_object_get_string(value));
    return 0;
}

static int read_label(struct strv *labels, const char *key, struct json_object *value,
                      struct err *err)
{
    char pointer[FIELD_POINTER_SIZE];

    (void)field_pointer(pointer, "/labels", key);
    if (!grammar_label_key.fits(key)) {
        return err_field(err, ERR_BAD_VALUE, pointer, "the key of %s must be %s", pointer,
                         grammar_label_key.words);
    }
    if (!json_object_is_type(value, json_type_string)) {
        return field_wrong_type(pointer, "a string", value, err);
    }
    if (content_in_has_nul(value) ||
        json_object_get_string_len(value) > OPTIONS_IN_LABEL_VALUE_MAX) {
        return err_field(err, ERR_BAD_VALUE, pointer,
                         "%s must be a text of at most %d bytes without NUL", pointer,
                         OPTIONS_IN_LABEL_VALUE_MAX);
    }
    strv_addf(labels, "%s=%s", key, json_object_get_string(value));
    return 0;
}

int tag_in_labels(struct json_object *value, const char *pointer, struct strv *labels,
                  struct err *err)
{
    if (!json_object_is_type(value, json_type_object)) {
        return field_wrong_type(pointer, "an object of strings", value, err);
    }
    if (json_object_object_length(value) > OPTIONS_IN_LABELS_MAX) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s has more than %d members", pointer,
                         OPTIONS_IN_LABELS_MAX);
    }
    strv_done(labels);
    json_object_object_foreach (value, key, item) {
        if (read_label(labels, key, item, err) < 0) {
            return -1;
        }
    }
    return 0;
}
