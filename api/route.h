/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route: which handler serves a method and a path. Pure; any thread.
 *
 * A pattern is made of literal segments, "{name}" for one segment that is fit for an id, and, as
 * the last one, "{name...}" for one or more segments of any bytes (a file's path). The first row
 * whose pattern matches wins.
 */
#ifndef KERND_API_ROUTE_H
#define KERND_API_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "api/api.h"
#include "api/decode.h"

/* What an Idempotency-Key does (once.h). */
enum route_once {
    ROUTE_REPEATS, /* nothing: asking twice does no harm */
    ROUTE_ONCE,
    ROUTE_ONCE_BY_PARTS, /* each part of the request is done once */
};

/* Whom a route serves. */
enum route_access {
    ROUTE_TOKEN, /* whoever has a token; what it reaches is for the handler to say (rights.h) */
    ROUTE_OPEN,  /* everybody: no token is asked for */
    ROUTE_FULL,  /* the user himself and his tokens of scope "full" */
};

struct api_route {
    const char *method;
    const char *pattern;
    void (*handler)(struct api_call *call);
    enum api_body body;
    enum route_access access;
    enum route_once once;
};

#define ROUTE_JSON_MAX ((size_t)16 << 20)
#define ROUTE_IGNORED_MAX ((size_t)64 << 10) /* of a body that nobody reads */

/* See api_route_find. */
const struct api_route *route_find(const char *method, const char *target, char *ret_allow,
                                   size_t allow_size, struct err *err);

/*
 * The rows by number, for counters: 0 to route_count() - 1; route_count() stands for requests that
 * found none (NULL, and OPTIONS). Pattern and method are never NULL.
 */
size_t route_count(void);
size_t route_index(const struct api_route *route);
const char *route_pattern(size_t index);
const char *route_method(size_t index);

bool route_matches(const char *pattern, const struct decode_path *path);

/*
 * What stands at "{name}" or "{name...}" of the pattern in a path that matches it: into the path,
 * not ended by a NUL for "{name}". NULL when the pattern has no such parameter.
 */
const char *route_parameter(const char *pattern, const char *name, const struct decode_path *path,
                            size_t *ret_size);

#endif
