/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: files, secrets and lists of paths in request bodies.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/files_in.h"

#include <string.h>

#include "api/content_in.h"
#include "api/field.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/sandbox/run.h"

#define SECRET_NAME_MAX 128

/* ---- files ---- */

static int read_file(struct run_file *file, const char *name, struct json_object *value,
                     struct err *err)
{
    char pointer[FIELD_POINTER_SIZE];

    (void)field_pointer(pointer, "/files", name);
    if (*name == '\0') {
        return err_field(err, ERR_BAD_PATH, pointer, "a file needs a name");
    }
    file->path = alloc_text(name);
    return content_in_read(value, pointer, &file->data, &file->size, err);
}

int files_in_read(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    struct run_request *request = target;

    if (!json_object_is_type(value, json_type_object)) {
        return field_wrong_type(pointer, "an object from path to content", value, err);
    }
    request->files = alloc_zero((size_t)json_object_object_length(value), sizeof(*request->files));
    json_object_object_foreach (value, name, item) {
        if (read_file(&request->files[request->file_count++], name, item, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int files_in_read_fetch(void *target, struct json_object *value, const char *pointer,
                        struct err *err)
{
    struct run_request *request = target;
    char item[FIELD_POINTER_SIZE];

    if (!json_object_is_type(value, json_type_array)) {
        return field_wrong_type(pointer, "an array of paths", value, err);
    }
    if (json_object_array_length(value) > FILES_IN_FETCH_MAX) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s names more than %d files", pointer,
                         FILES_IN_FETCH_MAX);
    }
    for (size_t i = 0; i < json_object_array_length(value); i++) {
        CLEANUP_FREE char *path = NULL;

        if (content_in_path(json_object_array_get_idx(value, i),
                            field_pointer_index(item, pointer, i), &path, err) < 0) {
            return -1;
        }
        strv_add(&request->fetch, path);
    }
    return 0;
}

/* ---- secrets ---- */

static bool secret_name_ok(const char *name)
{
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789-.";

    return *name != '\0' && *name != '.' && *name != '-' && strlen(name) <= SECRET_NAME_MAX &&
           name[strspn(name, all)] == '\0';
}

static int read_secret(struct run_file *secret, const char *name, struct json_object *value,
                       struct err *err)
{
    char pointer[FIELD_POINTER_SIZE];

    (void)field_pointer(pointer, "/secrets", name);
    if (!secret_name_ok(name)) {
        return err_field(err, ERR_BAD_VALUE, pointer,
                         "the name of %s must be 1 to %d of letters, digits, _, - and ., and start "
                         "with a letter, a digit or _",
                         pointer, SECRET_NAME_MAX);
    }
    secret->path = alloc_text(name);
    return content_in_read(value, pointer, &secret->data, &secret->size, err);
}

/* Messages never hold a value. */
int files_in_read_secrets(void *target, struct json_object *value, const char *pointer,
                          struct err *err)
{
    struct run_request *request = target;
    size_t bytes = 0;

    if (!json_object_is_type(value, json_type_object)) {
        return field_wrong_type(pointer, "an object from name to content", value, err);
    }
    if (json_object_object_length(value) > FILES_IN_SECRETS_MAX) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s has more than %d members", pointer,
                         FILES_IN_SECRETS_MAX);
    }
    request->secrets =
        alloc_zero((size_t)json_object_object_length(value), sizeof(*request->secrets));
    json_object_object_foreach (value, name, item) {
        struct run_file *secret = &request->secrets[request->secret_count++];

        if (read_secret(secret, name, item, err) < 0) {
            return -1;
        }
        bytes += secret->size;
    }
    if (bytes > FILES_IN_SECRETS_BYTES_MAX) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s is above %zu bytes in all", pointer,
                         FILES_IN_SECRETS_BYTES_MAX);
    }
    return 0;
}
