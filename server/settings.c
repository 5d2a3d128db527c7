/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read the file, the environment and the options, in this order.
 * Owns: nothing.
 * Threads: main, before any other starts.
 * May include: server, lib/base.
 */
#include "server/settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "server/config_file.h"
#include "server/places.h"

#define SYSTEM_FILE "/etc/kernd/kernd.conf"
#define FILE_OPTION "config"

/* ---- the file ---- */

static char *user_file(void)
{
    const char *base = places_environment("XDG_CONFIG_HOME");
    const char *home = places_environment("HOME");

    if (base != NULL && base[0] == '/') {
        return alloc_printf("%s/kernd/kernd.conf", base);
    }
    return home != NULL ? alloc_printf("%s/.config/kernd/kernd.conf", home) : NULL;
}

char *settings_default_file(void)
{
    const char *named = places_environment("KERND_CONFIG");
    char *path = named != NULL ? alloc_text(named) : user_file();

    if (named != NULL || (path != NULL && access(path, F_OK) == 0)) {
        return path;
    }
    free(path);
    return access(SYSTEM_FILE, F_OK) == 0 ? alloc_text(SYSTEM_FILE) : NULL;
}

static int read_default_file(struct config *config, struct err *err)
{
    CLEANUP_FREE char *path = settings_default_file();

    return path == NULL ? 0 : config_file_load(config, path, err);
}

/* ---- the environment ---- */

static char *variable_name(const char *key)
{
    char *name = alloc_printf("KERND_%s", key);

    for (char *at = name; *at != '\0'; at++) {
        if (*at >= 'a' && *at <= 'z') {
            *at = (char)(*at - 'a' + 'A');
        }
    }
    return name;
}

static int set_list(struct config *config, const char *key, const char *values, const char *origin,
                    struct err *err)
{
    for (;;) {
        const size_t length = strcspn(values, ",");
        CLEANUP_FREE char *value = alloc_copy(values, length);

        if (config_set(config, key, value, origin, err) < 0) {
            return -1;
        }
        if (values[length] == '\0') {
            return 0;
        }
        values += length + 1;
    }
}

static int read_environment(struct config *config, struct err *err)
{
    const char *key;

    config_layer(config);
    for (size_t i = 0; (key = config_key(i)) != NULL; i++) {
        CLEANUP_FREE char *name = variable_name(key);
        const char *value = places_environment(name);
        int result = 0;

        if (value != NULL) {
            result = config_is_list(key) ? set_list(config, key, value, name, err)
                                         : config_set(config, key, value, name, err);
        }
        if (result < 0) {
            return err_prefix(err, "%s", name);
        }
    }
    return 0;
}

/* ---- the options ---- */

/* One option of the vector, taken apart. */
struct option {
    char *name; /* without the dashes */
    const char *value;
};

static int unknown_option(const char *name, struct err *err)
{
    const char *nearest = config_nearest(name);
    CLEANUP_FREE char *meant = alloc_text(nearest != NULL ? nearest : "");

    for (char *at = meant; *at != '\0'; at++) {
        if (*at == '_') {
            *at = '-';
        }
    }
    if (nearest != NULL) {
        return err_set(err, ERR_BAD_VALUE, 0, "unknown option --%.60s: is --%s meant?", name,
                       meant);
    }
    return err_set(err, ERR_BAD_VALUE, 0, "unknown option --%.60s", name);
}

/* A switch may stand alone; everything else takes a value, after '=' or as the next argument. */
static int take_value(struct option *option, int count, char *const *arguments, int *at,
                      struct err *err)
{
    const bool is_switch = config_is_switch(option->name);

    if (!is_switch && !text_equal(option->name, FILE_OPTION) && !config_is_key(option->name)) {
        return unknown_option(option->name, err);
    }
    if (option->value != NULL) {
        return 0;
    }
    if (is_switch) {
        option->value = "true";
    } else if (*at + 1 < count) {
        option->value = arguments[++*at];
    } else {
        return err_set(err, ERR_BAD_VALUE, 0, "--%.60s needs a value", option->name);
    }
    return 0;
}

/* The option that starts at *at, which is moved to its last argument. The caller frees the name. */
static int take_option(int count, char *const *arguments, int *at, struct option *ret_option,
                       struct err *err)
{
    const char *text = arguments[*at];
    const char *equals = strchr(text, '=');
    size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    struct option option = { .value = equals != NULL ? equals + 1 : NULL };

    if (!text_starts_with(text, "--") || length < 3) {
        return err_set(err, ERR_BAD_VALUE, 0, "unexpected argument %.60s", text);
    }
    option.name = alloc_copy(text + 2, length - 2);
    if (take_value(&option, count, arguments, at, err) < 0) {
        free(option.name);
        return -1;
    }
    *ret_option = option;
    return 0;
}

/* Which file the options name: the last one. */
static int find_file(int count, char *const *arguments, const char **ret_path, struct err *err)
{
    for (int at = 0; at < count; at++) {
        struct option option = { .name = NULL };

        if (take_option(count, arguments, &at, &option, err) < 0) {
            return -1;
        }
        if (text_equal(option.name, FILE_OPTION)) {
            *ret_path = option.value;
        }
        free(option.name);
    }
    return 0;
}

static int read_options(int count, char *const *arguments, struct config *config, struct err *err)
{
    config_layer(config);
    for (int at = 0; at < count; at++) {
        struct option option = { .name = NULL };
        CLEANUP_FREE char *origin = NULL;
        int result = take_option(count, arguments, &at, &option, err);

        if (result == 0 && !text_equal(option.name, FILE_OPTION)) {
            origin = alloc_printf("--%s", option.name);
            result = config_set(config, option.name, option.value, origin, err);
        }
        free(option.name);
        if (result < 0) {
            return -1;
        }
    }
    return 0;
}

int settings_read(int count, char *const *arguments, struct config *config, struct err *err)
{
    const char *path = NULL;

    if (find_file(count, arguments, &path, err) < 0 ||
        (path != NULL ? config_file_load(config, path, err) : read_default_file(config, err)) < 0) {
        return -1;
    }
    return read_environment(config, err) < 0 ? -1 : read_options(count, arguments, config, err);
}
