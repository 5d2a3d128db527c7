/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field: reads the members of a JSON object into a struct, by a table.
 *
 * A table is data: names, types, ranges, where the value goes. One table a request body (tables
 * can share rows through `more`). Types are exact: no number is taken from a string, no number is
 * rounded or cut to its range. A member that is null is as good as absent, or sets its field back
 * (field_read_over).
 */
#ifndef KERND_API_FIELD_H
#define KERND_API_FIELD_H

#include <json.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

#define FIELD_POINTER_SIZE 128 /* as err.pointer */

enum field_type {
    FIELD_BOOL,   /* bool at offset */
    FIELD_WHOLE,  /* uint64_t at offset; 5.0 is a whole number, 5.5 is not */
    FIELD_NUMBER, /* double at offset */
    FIELD_CHOICE, /* one of the texts in choices; its index goes to choose */
    FIELD_OTHER,  /* read does it */
};

struct field {
    const char *name;
    enum field_type type;
    bool required;
    size_t offset; /* into the target */
    double min;    /* WHOLE (never below 0) and NUMBER: the smallest and the largest value there */
    double max;    /* can be; the maxima of a server are checked later */
    const char *const *choices; /* ended by NULL */
    void (*choose)(void *target, size_t index);
    /* pointer: the JSON pointer of value. 0, or -1 with err. */
    int (*read)(void *target, struct json_object *value, const char *pointer, struct err *err);
    void (*unset)(
        void *target); /* of OTHER, for field_read_over; NULL: null is as good as absent */
};

struct field_table {
    const struct field *fields;
    size_t count;
    const struct field_table *more; /* further rows, or NULL */
};

/*
 * Reads every member of the object. 0, or -1 with the pointer set: UNKNOWN_FIELD (with the nearest
 * known name as the remedy), BAD_VALUE (wrong type, out of range, required but missing), or what a
 * read function said. The target may be partly filled then.
 */
int field_read(const struct field_table *table, struct json_object *object, void *target,
               struct err *err);

/*
 * As field_read over a target that already has values: a member that is null sets a boolean or a
 * number back to what it is in `fresh`, a struct of the same type.
 */
int field_read_over(const struct field_table *table, struct json_object *object, void *target,
                    const void *fresh, struct err *err);

/* parent + "/" + name, with "~" and "/" escaped (RFC 6901), cut to fit. Returns out. */
char *field_pointer(char out[static FIELD_POINTER_SIZE], const char *parent, const char *name);
char *field_pointer_index(char out[static FIELD_POINTER_SIZE], const char *parent, size_t index);

/* "a string", "null" ... for messages. */
const char *field_type_text(const struct json_object *value);

/* -1 BAD_VALUE "... must be <what>, not <type of value>". */
int field_wrong_type(const char *pointer, const char *what, const struct json_object *value,
                     struct err *err);

#endif
