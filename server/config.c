/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: keep the settings; check every value as it is set; tell of them.
 * Owns: the strings of struct config.
 * Threads: main, before any other starts.
 * May include: lib/base, limits.h.
 */
#include "server/config.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"
#include "lib/base/text.h"
#include "server/config_keys.h"

#define SPARES 32
#define CONNECTIONS 512
#define REQUEST_S 60.0
#define GRACE_S 5.0
#define UPLOAD_BYTES (UINT64_C(16) << 30)

void config_init(struct config *config)
{
    *config = (struct config){
        .engine = alloc_text("auto"),
        .log_level = LOG_INFO,
        .spares = SPARES,
        .templates = 1,
        .connections = CONNECTIONS,
        .max_upload_bytes = UPLOAD_BYTES,
        .request_timeout_s = REQUEST_S,
        .grace_s = GRACE_S,
        .idle_exit_s = -1,
    };
}

void config_done(struct config *config)
{
    strv_done(&config->listens);
    strv_done(&config->hosts);
    strv_done(&config->workspace_roots);
    free(config->state_dir);
    free(config->runtime_dir);
    free(config->library_dir);
    free(config->engine);
    free(config->launcher);
    free(config->kern);
    free(config->image);
    free(config->image_cache);
    free(config->user);
    for (size_t i = 0; i < CONFIG_KEYS_MAX; i++) {
        free(config->marks[i].origin);
    }
    *config = (struct config){ .log_level = LOG_INFO };
}

static bool is_same_key(const char *given, const char *name)
{
    for (; *given != '\0' && *name != '\0'; given++, name++) {
        if (*given != *name && !(*given == '-' && *name == '_')) {
            return false;
        }
    }
    return *given == *name;
}

static const struct config_key *find_key(const char *name)
{
    for (size_t i = 0; i < config_keys_count; i++) {
        if (is_same_key(name, config_keys_table[i].name)) {
            return &config_keys_table[i];
        }
    }
    return NULL;
}

bool config_is_key(const char *key)
{
    return find_key(key) != NULL;
}

bool config_is_switch(const char *key)
{
    const struct config_key *found = find_key(key);

    return found != NULL && found->kind == CONFIG_SWITCH;
}

bool config_is_list(const char *key)
{
    const struct config_key *found = find_key(key);

    return found != NULL && found->kind == CONFIG_LIST;
}

bool config_was_set(const struct config *config, const char *name)
{
    const struct config_key *key = find_key(name);

    return key != NULL && config->marks[key - config_keys_table].origin != NULL &&
           config->marks[key - config_keys_table].layer == config->layer;
}

const char *config_key(size_t index)
{
    return index < config_keys_count ? config_keys_table[index].name : NULL;
}

const char *config_value(size_t index)
{
    return config_keys_table[index].value;
}

const char *config_nearest(const char *key)
{
    struct nearest nearest;

    nearest_init(&nearest, key);
    for (size_t i = 0; i < config_keys_count; i++) {
        nearest_offer(&nearest, config_keys_table[i].name);
    }
    return nearest_best(&nearest);
}

/* ---- one value ---- */

static int bad_value(const struct config_key *key, const char *wanted, struct err *err)
{
    return err_set(err, ERR_BAD_VALUE, 0, "%s must be %s", key->name, wanted);
}

static void replace_text(char **text, const char *value)
{
    free(*text);
    *text = alloc_text(value);
}

static int set_text(const struct config_key *key, char **text, const char *value, struct err *err)
{
    if (value[0] == '\0') {
        return bad_value(key, "given", err);
    }
    if (key->kind == CONFIG_ENGINE && !text_equal(value, "auto") && !text_equal(value, "kern") &&
        !text_equal(value, "bubblewrap")) {
        return bad_value(key, "auto, kern or bubblewrap", err);
    }
    replace_text(text, value);
    return 0;
}

static int set_switch(const struct config_key *key, bool *on, const char *value, struct err *err)
{
    if (!text_equal(value, "true") && !text_equal(value, "false")) {
        return bad_value(key, "true or false", err);
    }
    *on = text_equal(value, "true");
    return 0;
}

static int out_of_range(const struct config_key *key, struct err *err)
{
    return err_set(err, ERR_BAD_VALUE, 0, "%s must be a number from %.10g to %.10g", key->name,
                   key->low, key->high);
}

static int set_count(const struct config_key *key, uint64_t *field, const char *value,
                     struct err *err)
{
    uint64_t count = 0;

    if (text_parse_u64(value, &count) < 0 || (double)count < key->low ||
        (double)count > key->high) {
        return out_of_range(key, err);
    }
    *field = count;
    return 0;
}

static int set_number(const struct config_key *key, double *field, const char *value,
                      struct err *err)
{
    double number = 0;

    if (text_parse_double(value, &number) < 0 || number < key->low || number > key->high) {
        return out_of_range(key, err);
    }
    *field = number;
    return 0;
}

static int set_log(const struct config_key *key, struct config *config, const char *value,
                   struct err *err)
{
    if (key->kind == CONFIG_LEVEL) {
        return log_level_parse(value, &config->log_level) == 0
                   ? 0
                   : bad_value(key, "error, warning, info or debug", err);
    }
    if (!text_equal(value, "text") && !text_equal(value, "json")) {
        return bad_value(key, "text or json", err);
    }
    config->log_json = text_equal(value, "json");
    return 0;
}

static int add_text(const struct config_key *key, struct strv *list, const char *value,
                    struct err *err)
{
    if (value[0] == '\0') {
        return bad_value(key, "given", err);
    }
    if (key->offset == offsetof(struct config, workspace_roots) && value[0] != '/') {
        return bad_value(key, "an absolute path", err);
    }
    strv_add(list, value);
    return 0;
}

static int set_value(const struct config_key *key, struct config *config, const char *value,
                     struct err *err)
{
    void *field = (char *)config + key->offset;

    switch (key->kind) {
    case CONFIG_LIST:
        return add_text(key, field, value, err);
    case CONFIG_PATH:
    case CONFIG_TEXT:
    case CONFIG_ENGINE:
        return set_text(key, field, value, err);
    case CONFIG_SWITCH:
        return set_switch(key, field, value, err);
    case CONFIG_LEVEL:
    case CONFIG_FORMAT:
        return set_log(key, config, value, err);
    case CONFIG_COUNT:
        return set_count(key, field, value, err);
    case CONFIG_NUMBER:
        return set_number(key, field, value, err);
    }
    return -1;
}

static int unknown_key(const char *name, struct err *err)
{
    const char *nearest = config_nearest(name);

    if (nearest != NULL) {
        return err_set(err, ERR_BAD_VALUE, 0, "there is no setting called %.40s: is %s meant?",
                       name, nearest);
    }
    return err_set(err, ERR_BAD_VALUE, 0, "there is no setting called %.40s", name);
}

void config_layer(struct config *config)
{
    config->layer++;
}

int config_set(struct config *config, const char *name, const char *value, const char *origin,
               struct err *err)
{
    const struct config_key *key = find_key(name);
    struct config_mark *mark;

    if (key == NULL) {
        return unknown_key(name, err);
    }
    mark = &config->marks[key - config_keys_table];
    if (key->kind == CONFIG_LIST && mark->layer != config->layer) {
        strv_done((struct strv *)(void *)((char *)config + key->offset));
    }
    if (set_value(key, config, value, err) < 0) {
        return -1;
    }
    mark->layer = config->layer;
    replace_text(&mark->origin, origin);
    return 0;
}

/* ---- telling ---- */

/* A fresh text, NULL when it is not set; lists are shown entry by entry instead. */
static char *value_text(const struct config_key *key, const struct config *config)
{
    const void *field = (const char *)config + key->offset;

    switch (key->kind) {
    case CONFIG_PATH:
    case CONFIG_TEXT:
    case CONFIG_ENGINE:
        return alloc_text(*(char *const *)field);
    case CONFIG_SWITCH:
        return alloc_text(*(const bool *)field ? "true" : "false");
    case CONFIG_LEVEL:
        return alloc_text(log_level_name(config->log_level));
    case CONFIG_FORMAT:
        return alloc_text(config->log_json ? "json" : "text");
    case CONFIG_COUNT:
        return *(const uint64_t *)field == 0 && key->low > 0
                   ? NULL
                   : alloc_printf("%" PRIu64, *(const uint64_t *)field);
    case CONFIG_NUMBER:
        return *(const double *)field < key->low ? NULL
                                                 : alloc_printf("%.15g", *(const double *)field);
    case CONFIG_LIST:
        break;
    }
    return NULL;
}

static void show_value(const struct config_key *key, const char *value, const char *origin,
                       FILE *out)
{
    CLEANUP_FREE char *line = value != NULL ? alloc_printf("%s = %s", key->name, value)
                                            : alloc_printf("# %s =", key->name);

    (void)fprintf(out, "%-40s ; %s\n", line, origin);
}

void config_show(const struct config *config, const struct config *defaults, FILE *out)
{
    for (const struct config_key *key = config_keys_table;
         key < config_keys_table + config_keys_count; key++) {
        const char *origin = config->marks[key - config_keys_table].origin;
        const struct config *from = origin != NULL ? config : defaults;
        CLEANUP_FREE char *value = value_text(key, from);

        if (key->help == NULL && origin == NULL) {
            continue;
        }
        if (key->kind == CONFIG_LIST) {
            const struct strv *list = (const void *)((const char *)from + key->offset);

            for (size_t i = 0; i < list->count; i++) {
                show_value(key, list->items[i], origin != NULL ? origin : "default", out);
            }
            if (list->count > 0) {
                continue;
            }
        }
        show_value(key, value,
                   origin != NULL  ? origin
                   : value != NULL ? "default"
                                   : "not set",
                   out);
    }
}

void config_help(FILE *out)
{
    for (size_t i = 0; i < config_keys_count; i++) {
        if (config_keys_table[i].help == NULL) {
            continue;
        }
        CLEANUP_FREE char *option = alloc_printf(
            "--%s%s%s", config_keys_table[i].name, config_keys_table[i].value != NULL ? " " : "",
            config_keys_table[i].value != NULL ? config_keys_table[i].value : "");

        for (char *at = option; *at != '\0' && *at != ' '; at++) {
            if (*at == '_') {
                *at = '-';
            }
        }
        (void)fprintf(out, "  %-30s %s\n", option, config_keys_table[i].help);
    }
}

void config_list(FILE *out)
{
    for (size_t i = 0; i < config_keys_count; i++) {
        const struct config_key *key = &config_keys_table[i];
        const bool has_range = key->kind == CONFIG_COUNT || key->kind == CONFIG_NUMBER;
        CLEANUP_FREE char *range =
            has_range ? alloc_printf("%g to %.15g", key->low, key->high) : alloc_text("");

        (void)fprintf(out, "setting\t%s\t%s\t%s\t%s\n", key->name,
                      key->kind == CONFIG_SWITCH ? "true|false" : key->value, range, key->help);
    }
}
