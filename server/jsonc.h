/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsonc: sets one member in the text of a JSON file that people edit: comments, trailing commas,
 * order and indentation of everything else stay byte for byte. Pure; any thread.
 */
#ifndef KERND_SERVER_JSONC_H
#define KERND_SERVER_JSONC_H

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* The place and its content: {SECTION: {NAME: VALUE}}; value is JSON. */
struct jsonc_member {
    const char *section;
    const char *name;
    const char *value;
};

/*
 * Appends the new text. A blank one becomes a whole file; a section that is not there is made; a
 * value that is there is replaced. 0, or -1 BAD_VALUE, with the line: it is no JSON (not even with
 * comments and trailing commas), the section is no object, or a name is there twice.
 */
int jsonc_set(const char *text, size_t size, const struct jsonc_member *member, struct buf *out,
              struct err *err);

#endif
