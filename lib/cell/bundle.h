/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle: one rich result: MIME types and their data, in the binary form the drivers send.
 *
 *     u8 flags (bit 0: isMain) | u16 count | count x { u16 length, MIME type; u32 length, data }
 *
 * Integers are big-endian. The form comes from inside a box: hostile until bundle_decode accepted
 * it. MIME types are lower-case ASCII "type/subtype" of at most 100 bytes, no duplicates; data of
 * text types is valid UTF-8; image/png and other binary types arrive base64-encoded as text;
 * application/json and ...+json data is JSON text, which the reader still has to parse strictly.
 */
#ifndef KERND_CELL_BUNDLE_H
#define KERND_CELL_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

#define BUNDLE_PARTS_MAX 32

struct bundle_part {
    const char *mime; /* into the decoded bytes, not NUL-terminated */
    size_t mime_size;
    const char *data;
    size_t data_size;
};

struct bundle {
    bool is_main; /* the value of the last expression */
    size_t count;
    struct bundle_part parts[BUNDLE_PARTS_MAX];
};

/* Borrows data. 0, or -1 (err INTERNAL, "protocol: ...") when anything is malformed. Pure. */
int bundle_decode(const void *data, size_t size, struct bundle *ret_bundle, struct err *err);

#endif
