/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_in: a request body becomes a tree. Strict: see json_scan.h for all that is refused.
 */
#ifndef KERND_API_JSON_IN_H
#define KERND_API_JSON_IN_H

#include <json.h>
#include <stddef.h>

#include "lib/base/err.h"

#define JSON_IN_DEPTH 32
#define JSON_IN_VALUES 200000 /* a tree takes up to a hundred times the bytes of its text */

#define CLEANUP_JSON __attribute__((cleanup(json_in_put)))

/*
 * The object that the whole text is: the caller's reference (json_object_put). NULL with BAD_JSON:
 * empty, not strict JSON, or a value of another type. Any thread; the tree stays on one.
 */
struct json_object *json_in_parse(const char *text, size_t size, struct err *err);

/* The same, but the whole text may also be an array. */
struct json_object *json_in_value(const char *text, size_t size, struct err *err);

/* For CLEANUP_JSON. */
void json_in_put(struct json_object **object);

#endif
