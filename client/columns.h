/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns: rows of cells, lined up. For one thread.
 */
#ifndef KERND_CLIENT_COLUMNS_H
#define KERND_CLIENT_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/strv.h"

struct columns {
    size_t width;      /* cells in a row; the first row is the heading */
    struct strv cells; /* row by row */
};

/* cell NULL: "-". What a terminal could take for a command shows as "?". */
void columns_add(struct columns *columns, const char *cell);
void columns_add_whole(struct columns *columns, int64_t value);
/* "3.1M"; below 0: "-". */
void columns_add_bytes(struct columns *columns, int64_t bytes);
/* Time since a moment of the API ("2026-…Z"), "3s", "5m", "2h", "4d"; NULL: "-". */
void columns_add_age(struct columns *columns, const char *moment);

/*
 * Appends the rows, the heading between the sequences bold and plain, each cut to so many
 * characters (0: not cut). Nothing is left.
 */
void columns_write(struct columns *columns, struct buf *out, unsigned most, const char *bold,
                   const char *plain);

#endif
