/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_in: what a box is made of, and what a session is, in request bodies. Pure; any thread.
 *
 * An option that the engine can't do is read and checked first (a bad value is BAD_VALUE on every
 * host), then refused by name: never ignored (engine_in.h).
 */
#ifndef KERND_API_OPTIONS_IN_H
#define KERND_API_OPTIONS_IN_H

#include <json.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/sandbox/options.h"
#include "lib/sandbox/run.h"

struct field_table;
struct grammar_rule;
struct run_in_base;

#define OPTIONS_IN_MOUNTS_MAX 64
#define OPTIONS_IN_LABELS_MAX 64
#define OPTIONS_IN_LABEL_KEY_MAX 64
#define OPTIONS_IN_LABEL_VALUE_MAX 256
#define OPTIONS_IN_PREWARM_MAX 16
#define OPTIONS_IN_PRELOAD_MAX 64

/* What field tables read into. The request must come first: rows of run_in.c know no more. */
struct options_in {
    struct run_request run;
    struct options session; /* what only a session has; limits, env ... are in run */
    char *id;
    bool env_unset;           /* env was null */
    bool narrow;              /* see run_in_base */
    bool unenforced;          /* enforceLimits was false */
    const char *engine;       /* this server's; borrowed */
    const char *other_engine; /* see run_in_base */
    struct err unsupported;   /* the first option that bubblewrap can't do */
};

/* Filled with the base's defaults; base is borrowed. options_in_done in any case. */
void options_in_init(struct options_in *in, const struct run_in_base *base);
void options_in_done(struct options_in *in);

/* Rules over several fields, once all are read. 0, or -1 BAD_VALUE, FORBIDDEN ... */
int options_in_check(struct options_in *in, struct err *err);

/* What was read as a request of its own; `in` is empty but for its options then. */
struct run_request *options_in_take_request(struct options_in *in);

/* What was read as the options of a session; `in` is empty then. */
void options_in_take_session(struct options_in *in, struct options *ret_options);

/* engine, image, mounts, profiles, egressAllow, securityProfile ... and what every call takes. */
extern const struct field_table options_in_box_table;

/* For rows of other tables. */
int options_in_read_preload(void *target, struct json_object *value, const char *pointer,
                            struct err *err);
int options_in_read_workspace(void *target, struct json_object *value, const char *pointer,
                              struct err *err);

/* A string without NUL that fits the grammar; an array of them, appended to list. 0 or -1. */
int options_in_text(struct json_object *value, const char *pointer, const struct grammar_rule *rule,
                    struct err *err);
int options_in_texts(struct json_object *value, const char *pointer,
                     const struct grammar_rule *rule, struct strv *list, struct err *err);

#endif
