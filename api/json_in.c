/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: parse request bodies.
 * Owns: the use of json-c's parser.
 * Threads: any.
 * May include: lib/base, json-c.
 */
#include "api/json_in.h"

#include <limits.h>
#include <string.h>

#include "api/json_scan.h"

void json_in_put(struct json_object **object)
{
    (void)json_object_put(*object);
}

/* The text has passed json_scan. */
static struct json_object *build(const char *text, size_t size)
{
    struct json_tokener *tokener = json_tokener_new_ex(JSON_IN_DEPTH + 1);
    struct json_object *tree = NULL;

    if (tokener == NULL) {
        return NULL;
    }
    /* Not JSON_TOKENER_STRICT: json_scan has looked at the form, and json-c since 0.18 takes a
     * number above 64 bits for no JSON then, which is a wrong value and to be told as one. */
    json_tokener_set_flags(tokener, JSON_TOKENER_VALIDATE_UTF8);
    tree = json_tokener_parse_ex(tokener, text, (int)size);
    if (json_tokener_get_error(tokener) != json_tokener_success) {
        (void)json_object_put(tree);
        tree = NULL;
    }
    json_tokener_free(tokener);
    return tree;
}

struct json_object *json_in_value(const char *text, size_t size, struct err *err)
{
    const struct json_scan_bounds bounds = { .depth = JSON_IN_DEPTH, .values = JSON_IN_VALUES };
    struct json_object *tree = NULL;

    if (size == 0) {
        (void)err_set(err, ERR_BAD_JSON, 0, "the request has no body");
        return NULL;
    }
    if (size > INT_MAX) {
        (void)err_set(err, ERR_BODY_TOO_LARGE, 0, "the JSON body is above 2 GiB");
        return NULL;
    }
    if (json_scan(text, size, &bounds, err) < 0) {
        return NULL;
    }
    /* Asked of the text, since json-c gives NULL for the value null as for an error. */
    if (strchr("{[", text[strspn(text, " \t\r\n")]) == NULL) {
        (void)err_set(err, ERR_BAD_JSON, 0, "the body is JSON, but not an object");
        (void)err_remedy(err, "send a JSON object: {\"name\": value, ...}");
        return NULL;
    }
    tree = build(text, size);
    if (tree == NULL) {
        (void)err_set(err, ERR_BAD_JSON, 0, "the body could not be read as JSON");
    }
    return tree;
}

struct json_object *json_in_parse(const char *text, size_t size, struct err *err)
{
    struct json_object *tree = json_in_value(text, size, err);

    if (tree == NULL || json_object_is_type(tree, json_type_object)) {
        return tree;
    }
    (void)json_object_put(tree);
    (void)err_set(err, ERR_BAD_JSON, 0, "the body is JSON, but not an object");
    (void)err_remedy(err, "send a JSON object: {\"name\": value, ...}");
    return NULL;
}
