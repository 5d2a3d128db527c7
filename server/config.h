/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: what the daemon is told by its configuration file, its environment and its options.
 *
 * One table of keys serves them all, the help and `kernd config show`: "log_level = debug" in the
 * file is KERND_LOG_LEVEL=debug in the environment and "--log-level debug" as an option. Values are
 * checked when they are set. Not thread-safe; read-only once the daemon runs.
 */
#ifndef KERND_SERVER_CONFIG_H
#define KERND_SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/sandbox/capacity.h"
#include "lib/sandbox/limits.h"

#define CONFIG_KEYS_MAX 96

/* Which layer set a key last (0: none), and the words that tell a reader where. */
struct config_mark {
    unsigned layer;
    char *origin; /* "/etc/kernd/kernd.conf:3", "KERND_STATE", "--state"; NULL: the default */
};

struct config {
    unsigned layer; /* the one being read */
    struct config_mark marks[CONFIG_KEYS_MAX];
    struct strv listens; /* "127.0.0.1:5376", "[::1]:0", "unix:/path"; empty: the defaults */
    struct strv hosts;   /* further names for the Host field */
    struct strv workspace_roots; /* empty: no bound but the built-in ones */
    char *state_dir;             /* the directories: NULL until set or resolved (places.h) */
    char *runtime_dir;
    char *library_dir;
    char *engine;      /* "auto", "kern", "bubblewrap" */
    char *launcher;    /* NULL: found in PATH */
    char *kern;        /* NULL: found in PATH */
    char *image;       /* NULL: the sandbox's default */
    char *image_cache; /* NULL until set or resolved */
    bool image_pull;
    char *user; /* NULL: "nobody" when started as root */
    bool allow_root;
    bool hint;           /* print a line to paste when ready, also when stdout is no terminal */
    bool mcp_test_tools; /* see api_new */
    bool log_json;
    enum log_level log_level;
    struct capacity capacity; /* zero fields: see capacity.h */
    uint64_t spares;
    uint64_t templates;
    uint64_t connections;
    uint64_t max_upload_bytes;
    uint64_t snapshots_max_bytes; /* 0: the sandbox's default */
    double snapshots_max_age_s;   /* likewise */
    uint64_t workspace_files;     /* 0: the sandbox's default */
    double request_timeout_s;
    double idle_exit_s;     /* 0: never; below: see idle.h */
    bool on_demand;         /* a client that needed it started it */
    double grace_s;         /* how long running work may go on after a SIGTERM */
    struct limits maxima;   /* zero fields: built-in */
    struct limits defaults; /* likewise */
};

void config_init(struct config *config);
void config_done(struct config *config);

/*
 * Begins a layer: the file, the environment, the options, in this order. What a layer sets wins
 * over the layers before it; the first value of a list replaces what they gave, the next add to it.
 */
void config_layer(struct config *config);

/*
 * Sets one key ("log_level"; '-' is as good as '_'), told from where. 0, or -1 BAD_VALUE for an
 * unknown key, named together with the nearest known one, or a bad value, said without the value.
 */
int config_set(struct config *config, const char *name, const char *value, const char *origin,
               struct err *err);

/* Does the key exist, and does it stand without a value as an option (--allow-root)? */
bool config_is_key(const char *key);
bool config_is_switch(const char *key);

/* Is it a list, which may be given more than once? Has the layer being read set it already? */
bool config_is_list(const char *key);
bool config_was_set(const struct config *config, const char *name);

/* The known key that is most like this one, NULL when none is. Static. */
const char *config_nearest(const char *key);

/* The key number `index` of the table, NULL behind the last. Static. */
const char *config_key(size_t index);
/* What help calls its value, NULL: it is a switch. The index is that of a key. */
const char *config_value(size_t index);

/*
 * Writes every setting as a line of a configuration file, followed by a comment that tells where it
 * came from; of settings that nobody made, what `defaults` holds, or a comment line.
 */
void config_show(const struct config *config, const struct config *defaults, FILE *out);

/* Writes one line for each key: the option, its value and what it does. */
void config_help(FILE *out);

/* For programs: one line each, "setting KEY VALUE RANGE HELP" with tabs between. */
void config_list(FILE *out);

#endif
