/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content_in: texts, bytes and paths in request bodies. Pure; any thread.
 */
#ifndef KERND_API_CONTENT_IN_H
#define KERND_API_CONTENT_IN_H

#include <json.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

/* A string with a \u0000 in it? */
bool content_in_has_nul(struct json_object *text);

/*
 * Content: a string (its UTF-8 bytes) or {"base64": "..."} (any bytes), into fresh memory for the
 * caller to free, with a NUL behind. 0, or -1 BAD_VALUE.
 */
int content_in_read(struct json_object *value, const char *pointer, char **ret_data,
                    size_t *ret_size, struct err *err);

/*
 * A path in the box: not empty, no NUL, at most 4095 bytes, a fresh string. Whether it may be used
 * is for the library to say. 0, or -1: BAD_VALUE for the type, else BAD_PATH.
 */
int content_in_path(struct json_object *value, const char *pointer, char **ret_path,
                    struct err *err);

#endif
