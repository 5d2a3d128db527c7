/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compose: the JSON bodies of requests, from the options of a command. All append members to an
 * open object. 0, or -1 BAD_VALUE (said without secrets), or IO of a file that is named.
 */
#ifndef KERND_CLIENT_COMPOSE_H
#define KERND_CLIENT_COMPOSE_H

#include <stddef.h>

#include "api/json_out.h"
#include "client/flags.h"
#include "lib/base/err.h"

/* With files and inputs in base64; the server itself takes less. */
#define COMPOSE_MAX ((size_t)96 << 20)

/* The limits, env, mounts, image and engine that are given (COMMAND_LIMITS). */
int compose_limits(struct json_out *json, const struct flags *options, struct err *err);

/* cwd, files, secrets and fetchFiles that are given (COMMAND_CALL). */
int compose_call(struct json_out *json, const struct flags *options, struct err *err);

/* A member that is a text, a number as it is given, or "KEY=VALUE" options as an object. */
void compose_text(struct json_out *json, const char *name, const char *value);
int compose_number(struct json_out *json, const char *name, const struct flags *options,
                   const char *option, struct err *err);
int compose_labels(struct json_out *json, const struct flags *options, struct err *err);

/* {"base64": …} */
void compose_bytes(struct json_out *json, const void *data, size_t size);

/* "LEFT:RIGHT", cut at the last colon; right NULL: there is none. Two texts to be freed. */
void compose_split(const char *text, char **ret_left, char **ret_right);

#endif
