/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the tables of the fields of snapshots.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, json-c.
 */
#include "api/snapshot_in.h"

#include <stdlib.h>

#include "api/field.h"
#include "api/json_in.h"
#include "api/tag_in.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

void snapshot_in_done(struct snapshot_in *in)
{
    free(in->name);
    strv_done(&in->labels);
    in->name = NULL;
}

static int read_name(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    return tag_in_id(value, pointer, &((struct snapshot_in *)target)->name, err);
}

static int read_labels(void *target, struct json_object *value, const char *pointer,
                       struct err *err)
{
    return tag_in_labels(value, pointer, &((struct snapshot_in *)target)->labels, err);
}

static const struct field make_fields[] = {
    { .name = "name", .type = FIELD_OTHER, .read = read_name },
    { .name = "labels", .type = FIELD_OTHER, .read = read_labels },
};
static const struct field_table make_table = { make_fields, COUNT_OF(make_fields), NULL };

static const struct field restore_fields[] = {
    { .name = "snapshotId", .type = FIELD_OTHER, .required = true, .read = read_name },
};
static const struct field_table restore_table = { restore_fields, COUNT_OF(restore_fields), NULL };

static int read(const struct field_table *table, struct json_object *object,
                struct snapshot_in *ret_in, struct err *err)
{
    struct snapshot_in in = { .name = NULL };

    if (object == NULL || field_read(table, object, &in, err) < 0) {
        snapshot_in_done(&in);
        return -1;
    }
    *ret_in = in;
    return 0;
}

int snapshot_in_make(const char *body, size_t size, struct snapshot_in *ret_in, struct err *err)
{
    CLEANUP_JSON struct json_object *object =
        size == 0 ? json_in_parse("{}", 2, err) : json_in_parse(body, size, err);

    return read(&make_table, object, ret_in, err);
}

int snapshot_in_restore(const char *body, size_t size, char **ret_id, struct err *err)
{
    CLEANUP_JSON struct json_object *object = json_in_parse(body, size, err);
    struct snapshot_in in;

    if (read(&restore_table, object, &in, err) < 0) {
        return -1;
    }
    *ret_id = in.name;
    return 0;
}
