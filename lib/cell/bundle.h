/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle: one rich result: MIME types and their data, in the binary form the drivers send.
 *
 *     u8 flags | u16 count | count x { u16 length, MIME type; u32 length, data }
 *
 * Integers are big-endian. Flags: 1 the value of the last expression (isMain), 2 shortened (a long
 * text/plain was cut, or a part left out for its size). The form comes from inside a box: hostile
 * until bundle_decode accepted it. MIME types are lower-case ASCII "type/subtype" of at most 100
 * bytes, no duplicates; data of all types is valid UTF-8: image/png and other binary types are
 * base64 text. application/json and ...+json data is meant to be JSON text, which the reader has to
 * parse strictly; what does not parse is to be told as a string.
 */
#ifndef KERND_CELL_BUNDLE_H
#define KERND_CELL_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

#define BUNDLE_PARTS_MAX 40
#define BUNDLE_MIME_MAX 100

struct bundle_part {
    const char *mime; /* into the decoded bytes, not NUL-terminated */
    size_t mime_size;
    const char *data;
    size_t data_size;
};

struct bundle {
    bool is_main;
    bool shortened;
    size_t count; /* 0 only if shortened: all parts were too large */
    struct bundle_part parts[BUNDLE_PARTS_MAX];
};

/* Borrows data. 0, or -1 (err INTERNAL, "protocol: ...") when anything is malformed. Pure. */
int bundle_decode(const void *data, size_t size, struct bundle *ret_bundle, struct err *err);

#endif
