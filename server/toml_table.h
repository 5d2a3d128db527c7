/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_table: sets keys of one table in the text of a TOML file that people edit; everything else
 * stays byte for byte, also other keys, comments and tables below it. Pure; any thread.
 */
#ifndef KERND_SERVER_TOML_TABLE_H
#define KERND_SERVER_TOML_TABLE_H

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct toml_table {
    const char *parent; /* "mcp_servers" */
    const char *name;   /* "kernd": [mcp_servers.kernd] */
    const char *lines;  /* "key = value\n" ... */
    /* Keys that are ours: what the table has of them is dropped. Ends with NULL. */
    const char *const *keys;
};

/*
 * Appends the new text. 0, or -1 BAD_VALUE, with the line: something has no end, a line is neither
 * a header nor a key, or the table is there in another form (inline, or with dotted keys).
 */
int toml_table_set(const char *text, size_t size, const struct toml_table *table, struct buf *out,
                   struct err *err);

#endif
