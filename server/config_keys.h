/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_keys: the table of settings. A setting is a row here and a member of struct config: the
 * file, the environment, the options, the help and `kernd config show` follow. For server/config.c.
 */
#ifndef KERND_SERVER_CONFIG_KEYS_H
#define KERND_SERVER_CONFIG_KEYS_H

#include <stddef.h>

enum config_kind {
    CONFIG_LIST,   /* struct strv: entries, none empty */
    CONFIG_PATH,   /* char *: not empty */
    CONFIG_TEXT,   /* the same */
    CONFIG_ENGINE, /* char *: auto, kern, bubblewrap */
    CONFIG_SWITCH, /* bool: true, false; as an option it may stand alone */
    CONFIG_LEVEL,  /* enum log_level */
    CONFIG_FORMAT, /* bool: text, json */
    CONFIG_COUNT,  /* uint64_t from low to high */
    CONFIG_NUMBER, /* double from low to high */
};

struct config_key {
    const char *name; /* "log_level"; --log-level, KERND_LOG_LEVEL */
    enum config_kind kind;
    size_t offset; /* in struct config */
    double low;
    double high;
    const char *value; /* as help shows it */
    const char *help;  /* NULL: for tests alone, not shown */
};

extern const struct config_key config_keys_table[];
extern const size_t config_keys_count;

#endif
