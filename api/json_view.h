/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_view: what a client of this API reads in the answers. Values are borrowed from their tree.
 * Pure; a tree stays on one thread.
 *
 * A path is names of members with points between ("fault.message"). What is absent, null, or of
 * another type than asked for is as good as not there.
 */
#ifndef KERND_API_JSON_VIEW_H
#define KERND_API_JSON_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct json_object;

#define CLEANUP_JSON_VIEW __attribute__((cleanup(json_view_clean)))

/* The object or array that the whole text is, NULL if it is none; json_view_free (NULL is fine). */
struct json_object *json_view_parse(const char *text, size_t size);
void json_view_free(struct json_object *tree);
/* For CLEANUP_JSON_VIEW. */
void json_view_clean(struct json_object **tree);

/* NULL: not there. value may be NULL in all of these. */
struct json_object *json_view_at(struct json_object *value, const char *path);
const char *json_view_text(struct json_object *value, const char *path);
/* As json_view_text, for text that may hold NUL bytes. */
const char *json_view_bytes(struct json_object *value, const char *path, size_t *ret_size);
int64_t json_view_whole(struct json_object *value, const char *path, int64_t otherwise);
double json_view_number(struct json_object *value, const char *path, double otherwise);
bool json_view_true(struct json_object *value, const char *path);

/* Of an array (0: there is none), and one of its items. */
size_t json_view_count(struct json_object *value, const char *path);
struct json_object *json_view_item(struct json_object *value, const char *path, size_t index);

/* The name of a member of an object by its place, NULL behind the last; *ret_member its value. */
const char *json_view_member(struct json_object *value, size_t index,
                             struct json_object **ret_member);

/* Appends the value as JSON text on one line. */
void json_view_print(struct json_object *value, struct buf *out);

#endif
