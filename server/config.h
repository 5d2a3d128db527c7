/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: what the daemon is told by its configuration file and its options.
 *
 * One table of keys serves both: "log_level = debug" in the file is "--log-level debug" as an
 * option. Values are checked when they are set. Not thread-safe; read-only once the daemon runs.
 */
#ifndef KERND_SERVER_CONFIG_H
#define KERND_SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/sandbox/limits.h"

struct config {
    struct strv listens; /* "127.0.0.1:5376", "[::1]:0", "unix:/path"; empty: the defaults */
    struct strv hosts;   /* further names for the Host field */
    struct strv workspace_roots; /* empty: no bound but the built-in ones */
    char *state_dir;             /* the directories: NULL until set or resolved (places.h) */
    char *runtime_dir;
    char *library_dir;
    char *engine;   /* "auto", "kern", "bubblewrap" */
    char *launcher; /* NULL: found in PATH */
    char *user;     /* NULL: "nobody" when started as root */
    bool allow_root;
    bool hint; /* print a line to paste when ready, also when stdout is no terminal */
    bool log_json;
    enum log_level log_level;
    uint64_t workers; /* 0: from cores and memory */
    uint64_t spares;
    uint64_t queue; /* 0: the sandbox's default */
    uint64_t connections;
    uint64_t max_upload_bytes;
    uint64_t snapshots_max_bytes; /* 0: the sandbox's default */
    double snapshots_max_age_s;   /* likewise */
    double request_timeout_s;
    double grace_s;         /* how long running work may go on after a SIGTERM */
    struct limits maxima;   /* zero fields: built-in */
    struct limits defaults; /* likewise */
};

void config_init(struct config *config);
void config_done(struct config *config);

/*
 * Sets one key ("log_level"; '-' is as good as '_'); list keys are added to. 0, or -1 BAD_VALUE for
 * an unknown key or a bad value, said without the value itself.
 */
int config_set(struct config *config, const char *name, const char *value, struct err *err);

/* Does the key exist, and does it stand without a value as an option (--allow-root)? */
bool config_is_key(const char *key);
bool config_is_switch(const char *key);

/* Empties a list key, so that options replace the list of the file; nothing for other keys. */
void config_clear_list(struct config *config, const char *name);

/*
 * Reads "key = value" lines; blank lines and lines that start with '#' are skipped. Unknown keys,
 * keys given twice (but lists) and bad values are refused as "name:line: ...". Pure.
 */
int config_parse(struct config *config, const char *name, const char *text, struct err *err);

/* config_parse of a file of at most 1 MiB. */
int config_load(struct config *config, const char *path, struct err *err);

/* Writes one line for each key: the option, its value and what it does. */
void config_help(FILE *out);

#endif
