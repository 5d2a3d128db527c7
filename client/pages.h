/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages: lists of the API ({items, nextCursor}) as tables. For one thread.
 */
#ifndef KERND_CLIENT_PAGES_H
#define KERND_CLIENT_PAGES_H

#include "client/ask.h"
#include "client/columns.h"

struct pages {
    const char *const *headings; /* up to NULL */
    void (*add_row)(struct columns *columns, struct json_object *item);
    uint64_t limit; /* without --limit; 0: none */
};

/*
 * Prints all pages of lists (targets, up to NULL) as one table: with --quiet the ids alone, with
 * --json the items as they are, as one array in an object. With --limit no more than that. 0, or -1
 * as functions of ask.
 */
int pages_list(struct ask *ask, const char *const *targets, const struct pages *pages);

/* DELETE of each operand below /v1/kind. */
int pages_remove(struct ask *ask, const char *kind);

#endif
