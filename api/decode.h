/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode: the raw path and the raw query of a request. Pure; any thread.
 *
 * Percent signs are decoded exactly once, segment by segment after splitting, so an encoded slash
 * never becomes a separator (it is refused) and an encoded dot segment is seen as one.
 */
#ifndef KERND_API_DECODE_H
#define KERND_API_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

#define DECODE_PATH_MAX 6144   /* bytes of a raw path: a workspace path of 4095 and a prefix */
#define DECODE_SEGMENTS_MAX 16 /* recorded ones; a path may be deeper */
#define DECODE_QUERY_MAX 8192  /* the cursor of a path of 4095 bytes fits */
#define DECODE_PARAMETERS_MAX 16

struct decode_segment {
    const char *text; /* into decode_path.text; any bytes but NUL and '/' */
    size_t size;
    bool plain; /* UTF-8 without control characters: fit for an id */
};

struct decode_path {
    char text[DECODE_PATH_MAX + 1]; /* decoded, segments with one slash between, NUL at the end */
    size_t size;
    struct decode_segment segments[DECODE_SEGMENTS_MAX];
    size_t count; /* all of them, recorded or not */
};

/*
 * "/v1/run" becomes "v1", "run"; "/" has no segment. 0, or -1: BAD_PATH (no slash in front, bad
 * escape, NUL, encoded slash, "." or ".."), ROUTE_NOT_FOUND (an empty segment), URI_TOO_LONG.
 */
int decode_path(const char *raw, struct decode_path *ret_path, struct err *err);

struct decode_query {
    char text[DECODE_QUERY_MAX + 2];
    struct {
        const char *name;
        const char *value; /* "" where there was no "=" */
    } parameters[DECODE_PARAMETERS_MAX];
    size_t count;
};

/*
 * "a=1&b=x+y" (application/x-www-form-urlencoded: plus is a space). known: the names there are,
 * ended by NULL; "*name" stands for a parameter whose value need not be UTF-8. 0, or -1:
 * UNKNOWN_FIELD or BAD_VALUE naming the parameter (unknown, twice, bad escape, NUL, not UTF-8),
 * URI_TOO_LONG.
 */
int decode_query(const char *raw, const char *const *known, struct decode_query *ret_query,
                 struct err *err);

struct decode_range {
    uint64_t min;
    uint64_t max;
};

/* NULL when the parameter was not given. */
const char *decode_query_text(const struct decode_query *query, const char *name);

/*
 * For an absent parameter the value stays as it is. "true"/"1"/"" and "false"/"0"; a decimal number
 * from min to max. 0, or -1 BAD_VALUE.
 */
int decode_query_bool(const struct decode_query *query, const char *name, bool *ret_value,
                      struct err *err);
int decode_query_count(const struct decode_query *query, const char *name,
                       const struct decode_range *range, uint64_t *ret_value, struct err *err);

#endif
