/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_scan: is this text one strict JSON value? Pure; any thread.
 *
 * Exactly the grammar of RFC 8259 and more: UTF-8 only, no byte order mark, no duplicate names in
 * an object, no lone surrogate, no \u0000 in a name, no number from 1e308 on, bounded depth and
 * number of values. json-c 0.16 lets several of these pass even in its strict mode (single quotes,
 * NaN, raw control characters, leading zeros, duplicates, bytes after a NUL), so a request body
 * goes through here first.
 */
#ifndef KERND_API_JSON_SCAN_H
#define KERND_API_JSON_SCAN_H

#include <stddef.h>

#include "lib/base/err.h"

#define JSON_SCAN_DEPTH_MAX 256 /* bounds the recursion whatever a caller asks for */

struct json_scan_bounds {
    unsigned depth; /* nested arrays and objects, at most JSON_SCAN_DEPTH_MAX */
    size_t values;  /* values of any kind, in all */
};

/* 0, or -1 BAD_JSON that names line, column and byte of the first fault. */
int json_scan(const char *text, size_t size, const struct json_scan_bounds *bounds,
              struct err *err);

#endif
