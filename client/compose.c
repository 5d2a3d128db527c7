/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: turn options into members of a request.
 * Owns: nothing.
 * Threads: main.
 * May include: client, api/json_out.h, server/places.h, lib/base.
 */
#include "client/compose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "server/places.h"

#define FILE_MAX ((size_t)64 << 20)

void compose_text(struct json_out *json, const char *name, const char *value)
{
    if (value != NULL) {
        json_out_key(json, name);
        json_out_string(json, value);
    }
}

int compose_number(struct json_out *json, const char *name, const struct flags *options,
                   const char *option, struct err *err)
{
    const char *value = flags_value(options, option);
    double number = 0;

    if (value == NULL) {
        return 0;
    }
    /* JSON has no leading zeros. */
    if (text_parse_double(value, &number) < 0 ||
        (value[0] == '0' && value[1] != '\0' && value[1] != '.')) {
        (void)err_set(err, ERR_BAD_VALUE, 0, "--%s %.60s is no number", option, value);
        return err_remedy(err, "see: kernd %s --help", options->command->name);
    }
    json_out_key(json, name);
    json_out_raw(json, value, strlen(value));
    return 0;
}

void compose_bytes(struct json_out *json, const void *data, size_t size)
{
    json_out_open(json, '{');
    json_out_key(json, "base64");
    json_out_base64(json, data, size);
    json_out_close(json, '}');
}

void compose_split(const char *text, char **ret_left, char **ret_right)
{
    const char *colon = strrchr(text, ':');

    *ret_left = colon == NULL ? alloc_text(text) : alloc_copy(text, (size_t)(colon - text));
    *ret_right = colon == NULL || colon[1] == '\0' ? NULL : alloc_text(colon + 1);
}

/* ---- lists ---- */

/* One NAME=VALUE of an option; the name to be freed, NULL with err. */
static char *take_name(const char *text, const char *option, const char **ret_value,
                       struct err *err)
{
    const char *equals = strchr(text, '=');

    if (equals == NULL || equals == text) {
        (void)err_set(err, ERR_BAD_VALUE, 0, "--%s wants NAME=VALUE", option);
        return NULL;
    }
    *ret_value = equals + 1;
    return alloc_copy(text, (size_t)(equals - text));
}

static int add_env(struct json_out *json, const struct flags *options, struct err *err)
{
    const char *text;
    size_t at = 0;

    if (!flags_has(options, "env")) {
        return 0;
    }
    json_out_key(json, "env");
    json_out_open(json, '{');
    while ((text = flags_next(options, "env", &at)) != NULL) {
        const char *value = strchr(text, '=') == NULL ? places_environment(text) : NULL;
        CLEANUP_FREE char *name = NULL;

        if (strchr(text, '=') != NULL) {
            name = take_name(text, "env", &value, err);
            if (name == NULL) {
                return -1;
            }
        }
        if (value != NULL) {
            compose_text(json, name == NULL ? text : name, value);
        }
    }
    json_out_close(json, '}');
    return 0;
}

int compose_labels(struct json_out *json, const struct flags *options, struct err *err)
{
    const char *text;
    size_t at = 0;

    if (!flags_has(options, "label")) {
        return 0;
    }
    json_out_key(json, "labels");
    json_out_open(json, '{');
    while ((text = flags_next(options, "label", &at)) != NULL) {
        const char *value = NULL;
        CLEANUP_FREE char *name = take_name(text, "label", &value, err);

        if (name == NULL) {
            return -1;
        }
        compose_text(json, name, value);
    }
    json_out_close(json, '}');
    return 0;
}

/* HOST:BOX, HOST:BOX:ro or HOST:BOX:rw */
static int add_mount(struct json_out *json, const char *text, struct err *err)
{
    const bool writable = text_ends_with(text, ":rw");
    CLEANUP_FREE char *both =
        alloc_copy(text, strlen(text) - (writable || text_ends_with(text, ":ro") ? 3 : 0));
    CLEANUP_FREE char *host = NULL;
    CLEANUP_FREE char *box = NULL;

    compose_split(both, &host, &box);
    if (box == NULL) {
        (void)err_set(err, ERR_BAD_VALUE, 0, "--mount %.80s: where in the box?", text);
        return err_remedy(err, "write HOST:BOX, or HOST:BOX:rw");
    }
    json_out_key(json, host);
    json_out_open(json, '[');
    json_out_string(json, box);
    json_out_string(json, writable ? "rw" : "ro");
    json_out_close(json, ']');
    return 0;
}

static int add_mounts(struct json_out *json, const struct flags *options, struct err *err)
{
    const char *text;
    size_t at = 0;

    if (!flags_has(options, "mount")) {
        return 0;
    }
    json_out_key(json, "mounts");
    json_out_open(json, '{');
    while ((text = flags_next(options, "mount", &at)) != NULL) {
        if (add_mount(json, text, err) < 0) {
            return -1;
        }
    }
    json_out_close(json, '}');
    return 0;
}

int compose_limits(struct json_out *json, const struct flags *options, struct err *err)
{
    static const char *const numbers[][2] = {
        { "timeoutS", "timeout" }, { "memoryMb", "memory" }, { "cpus", "cpus" },
        { "pids", "pids" },        { "diskMb", "disk" },     { "maxOutputBytes", "max-output" }
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (compose_number(json, numbers[i][0], options, numbers[i][1], err) < 0) {
            return -1;
        }
    }
    if (flags_has(options, "network")) {
        json_out_key(json, "network");
        json_out_bool(json, true);
    }
    compose_text(json, "image", flags_value(options, "image"));
    compose_text(json, "engine", flags_value(options, "engine"));
    return add_env(json, options, err) < 0 ? -1 : add_mounts(json, options, err);
}

/* ---- files ---- */

static int add_file(struct json_out *json, const char *name, const char *path, struct err *err)
{
    size_t size = 0;
    CLEANUP_FREE char *data = fd_read_file(path, FILE_MAX, &size);

    if (data == NULL) {
        (void)err_set(err, ERR_IO, errno, "%.200s: %s", path, err_errno_text(errno));
        return errno == EFBIG ? err_remedy(err, "copy large files into a session: kernd cp --help")
                              : -1;
    }
    json_out_key(json, name);
    compose_bytes(json, data, size);
    return 0;
}

static int add_files(struct json_out *json, const struct flags *options, struct err *err)
{
    const char *text;
    size_t at = 0;

    if (!flags_has(options, "file")) {
        return 0;
    }
    json_out_key(json, "files");
    json_out_open(json, '{');
    while ((text = flags_next(options, "file", &at)) != NULL) {
        CLEANUP_FREE char *local = NULL;
        CLEANUP_FREE char *path = NULL;
        const char *slash;

        compose_split(text, &local, &path);
        slash = strrchr(local, '/');
        if (add_file(json,
                     path != NULL    ? path
                     : slash != NULL ? slash + 1
                                     : local,
                     local, err) < 0) {
            return -1;
        }
    }
    json_out_close(json, '}');
    return 0;
}

static int add_secrets(struct json_out *json, const struct flags *options, struct err *err)
{
    const char *text;
    size_t at = 0;

    if (!flags_has(options, "secret")) {
        return 0;
    }
    json_out_key(json, "secrets");
    json_out_open(json, '{');
    while ((text = flags_next(options, "secret", &at)) != NULL) {
        const char *path = NULL;
        CLEANUP_FREE char *name = take_name(text, "secret", &path, err);

        if (name == NULL || add_file(json, name, path, err) < 0) {
            return -1;
        }
    }
    json_out_close(json, '}');
    return 0;
}

static void add_fetched(struct json_out *json, const struct flags *options)
{
    const char *text;
    size_t at = 0;

    if (!flags_has(options, "fetch")) {
        return;
    }
    json_out_key(json, "fetchFiles");
    json_out_open(json, '[');
    while ((text = flags_next(options, "fetch", &at)) != NULL) {
        CLEANUP_FREE char *path = NULL;
        CLEANUP_FREE char *local = NULL;

        compose_split(text, &path, &local);
        json_out_string(json, path);
    }
    json_out_close(json, ']');
}

int compose_call(struct json_out *json, const struct flags *options, struct err *err)
{
    compose_text(json, "cwd", flags_value(options, "cwd"));
    add_fetched(json, options);
    return add_files(json, options, err) < 0 ? -1 : add_secrets(json, options, err);
}
