/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_in: the bodies of run and runCode become a run_request. Pure; any thread.
 */
#ifndef KERND_API_RUN_IN_H
#define KERND_API_RUN_IN_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/sandbox/limits.h"
#include "lib/sandbox/run.h"

#define RUN_IN_ARGUMENT_MAX \
    131071 /* bytes of one argument: MAX_ARG_STRLEN of Linux, less its NUL */
#define RUN_IN_ARGUMENTS_MAX ((size_t)1536 * 1024) /* of all; Linux has 2 MiB for argv and env */

struct field_table;
struct json_object;
struct options;

/* What a body is read over. Borrowed. */
struct run_in_base {
    const struct limits *defaults; /* this server's */
    const char *engine;            /* this server's; NULL: "bubblewrap" */
    const char *other_engine;      /* that a call may ask for, NULL: there is none */
    const struct options *session; /* what is not in the body is inherited from it; NULL: none */
    bool narrow;                   /* the caller may not choose the engine, domains and walls */
};

/*
 * A fresh request for the caller to give away. In a session a field that is absent is inherited,
 * one that is null is the server's default (env: none of the session's variables). NULL with err:
 * BAD_JSON, UNKNOWN_FIELD, BAD_VALUE, NOT_SUPPORTED_HERE, FORBIDDEN, NETWORK_DENIED.
 */
struct run_request *run_in_decode(enum run_kind kind, const char *body, size_t size,
                                  const struct run_in_base *base, struct err *err);

/* The same for one that was parsed already. */
struct run_request *run_in_read(enum run_kind kind, struct json_object *object,
                                const struct run_in_base *base, struct err *err);

/*
 * Rows that bodies of sessions share with those of calls: limits, env, network, trackFiles. They
 * read into a struct whose first member is a struct run_request.
 */
extern const struct field_table run_in_shared_table;
extern const struct field_table run_in_limit_table; /* the limits alone */

/* For rows of other tables, whose target begins with a struct run_request: code, stdin, id. */
int run_in_read_code(void *target, struct json_object *value, const char *pointer, struct err *err);
int run_in_read_stdin(void *target, struct json_object *value, const char *pointer,
                      struct err *err);
int run_in_read_id(void *target, struct json_object *value, const char *pointer, struct err *err);

#endif
