/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read the members of a JSON object by a table.
 * Owns: nothing.
 * Threads: any.
 * May include: lib/base, json-c.
 */
#include "api/field.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/nearest.h"
#include "lib/base/text.h"

char *field_pointer(char out[static FIELD_POINTER_SIZE], const char *parent, const char *name)
{
    size_t used = (size_t)snprintf(out, FIELD_POINTER_SIZE, "%s/", parent);

    for (; *name != '\0' && used + 2 < FIELD_POINTER_SIZE; name++) {
        if (*name == '~' || *name == '/') {
            out[used++] = '~';
            out[used++] = *name == '~' ? '0' : '1';
        } else {
            out[used++] = *name;
        }
    }
    out[used < FIELD_POINTER_SIZE ? used : FIELD_POINTER_SIZE - 1] = '\0';
    return out;
}

char *field_pointer_index(char out[static FIELD_POINTER_SIZE], const char *parent, size_t index)
{
    (void)snprintf(out, FIELD_POINTER_SIZE, "%s/%zu", parent, index);
    return out;
}

const char *field_type_text(const struct json_object *value)
{
    switch (json_object_get_type(value)) {
    case json_type_null:
        return "null";
    case json_type_boolean:
        return "a boolean";
    case json_type_double:
    case json_type_int:
        return "a number";
    case json_type_object:
        return "an object";
    case json_type_array:
        return "an array";
    case json_type_string:
        return "a string";
    }
    return "something else";
}

int field_wrong_type(const char *pointer, const char *what, const struct json_object *value,
                     struct err *err)
{
    return err_field(err, ERR_BAD_VALUE, pointer, "%s must be %s, not %s", pointer, what,
                     field_type_text(value));
}

/* ---- one value ---- */

static int read_bool(const struct field *field, struct json_object *value, void *to,
                     const char *pointer, struct err *err)
{
    (void)field;
    if (!json_object_is_type(value, json_type_boolean)) {
        return field_wrong_type(pointer, "true or false", value, err);
    }
    *(bool *)to = json_object_get_boolean(value) != 0;
    return 0;
}

static int read_double(const struct field *field, struct json_object *value, double *ret_number,
                       const char *pointer, struct err *err)
{
    double number = 0;

    if (!json_object_is_type(value, json_type_int) &&
        !json_object_is_type(value, json_type_double)) {
        return field_wrong_type(pointer, field->type == FIELD_WHOLE ? "a whole number" : "a number",
                                value, err);
    }
    /* json-c turns what is too large into infinity or its largest integer: out of any range. */
    number = json_object_get_double(value);
    if (isfinite(number) && number < field->min) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s must be at least %.15g", pointer,
                         field->min);
    }
    if (!isfinite(number) || number > field->max) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s must be at most %.15g", pointer,
                         field->max);
    }
    *ret_number = number;
    return 0;
}

static int read_whole(const struct field *field, struct json_object *value, void *to,
                      const char *pointer, struct err *err)
{
    double number = 0;
    uint64_t whole = 0;

    if (read_double(field, value, &number, pointer, err) < 0) {
        return -1;
    }
    whole = (uint64_t)number;
    if (number > (double)whole) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s must be a whole number", pointer);
    }
    *(uint64_t *)to = whole;
    return 0;
}

static int read_number(const struct field *field, struct json_object *value, void *to,
                       const char *pointer, struct err *err)
{
    return read_double(field, value, to, pointer, err);
}

static void list_choices(const struct field *field, struct buf *out)
{
    for (size_t i = 0; field->choices[i] != NULL; i++) {
        (void)buf_printf(out, "%s\"%s\"", i == 0 ? "" : ", ", field->choices[i]);
    }
}

static int read_choice(const struct field *field, struct json_object *value, void *target,
                       const char *pointer, struct err *err)
{
    CLEANUP_BUF struct buf list = BUF_INIT(200);
    const char *text = json_object_get_string(value);

    for (size_t i = 0; json_object_is_type(value, json_type_string) && field->choices[i] != NULL;
         i++) {
        if (text_equal(text, field->choices[i]) &&
            strlen(text) == (size_t)json_object_get_string_len(value)) {
            field->choose(target, i);
            return 0;
        }
    }
    list_choices(field, &list);
    return err_field(err, ERR_BAD_VALUE, pointer, "%s must be one of %s", pointer, list.data);
}

static int read_value(const struct field *field, struct json_object *value, void *target,
                      struct err *err)
{
    char pointer[FIELD_POINTER_SIZE];
    char *to = (char *)target + field->offset;

    (void)field_pointer(pointer, "", field->name);
    switch (field->type) {
    case FIELD_BOOL:
        return read_bool(field, value, to, pointer, err);
    case FIELD_WHOLE:
        return read_whole(field, value, to, pointer, err);
    case FIELD_NUMBER:
        return read_number(field, value, to, pointer, err);
    case FIELD_CHOICE:
        return read_choice(field, value, target, pointer, err);
    case FIELD_OTHER:
        return field->read(target, value, pointer, err);
    }
    return -1;
}

/* ---- the object ---- */

static const struct field *find(const struct field_table *table, const char *name)
{
    for (; table != NULL; table = table->more) {
        for (size_t i = 0; i < table->count; i++) {
            if (text_equal(table->fields[i].name, name)) {
                return &table->fields[i];
            }
        }
    }
    return NULL;
}

static int unknown(const struct field_table *table, const char *name, struct err *err)
{
    char pointer[FIELD_POINTER_SIZE];
    struct nearest nearest;

    nearest_init(&nearest, name);
    for (const struct field_table *t = table; t != NULL; t = t->more) {
        for (size_t i = 0; i < t->count; i++) {
            nearest_offer(&nearest, t->fields[i].name);
        }
    }
    (void)field_pointer(pointer, "", name);
    (void)err_field(err, ERR_UNKNOWN_FIELD, pointer, "there is no field %s here", pointer);
    if (nearest_best(&nearest) != NULL) {
        (void)err_remedy(err, "did you mean \"%s\"?", nearest_best(&nearest));
    }
    return -1;
}

static int check_required(const struct field_table *table, struct json_object *object,
                          struct err *err)
{
    char pointer[FIELD_POINTER_SIZE];

    for (; table != NULL; table = table->more) {
        for (size_t i = 0; i < table->count; i++) {
            const struct field *field = &table->fields[i];

            if (field->required && json_object_object_get(object, field->name) == NULL) {
                (void)field_pointer(pointer, "", field->name);
                return err_field(err, ERR_BAD_VALUE, pointer, "the field %s is missing", pointer);
            }
        }
    }
    return 0;
}

/* The member is null. */
static void set_back(const struct field *field, void *target, const void *fresh)
{
    char *to = (char *)target + field->offset;
    const char *from = (const char *)fresh + field->offset;

    switch (field->type) {
    case FIELD_BOOL:
        memcpy(to, from, sizeof(bool));
        break;
    case FIELD_WHOLE:
        memcpy(to, from, sizeof(uint64_t));
        break;
    case FIELD_NUMBER:
        memcpy(to, from, sizeof(double));
        break;
    case FIELD_CHOICE:
        break;
    case FIELD_OTHER:
        if (field->unset != NULL) {
            field->unset(target);
        }
        break;
    }
}

int field_read_over(const struct field_table *table, struct json_object *object, void *target,
                    const void *fresh, struct err *err)
{
    json_object_object_foreach (object, name, value) {
        const struct field *field = find(table, name);

        if (field == NULL) {
            return unknown(table, name, err);
        }
        if (value != NULL && read_value(field, value, target, err) < 0) {
            return -1;
        }
        if (value == NULL && fresh != NULL) {
            set_back(field, target, fresh);
        }
    }
    return check_required(table, object, err);
}

int field_read(const struct field_table *table, struct json_object *object, void *target,
               struct err *err)
{
    return field_read_over(table, object, target, NULL, err);
}
