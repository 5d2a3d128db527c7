/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: headers of routes that will go.
 * Owns: the table.
 * Threads: any (pure functions).
 * May include: lib/base.
 */
#include "api/retirement.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"

#define MS_PER_S 1000

/* Version 1 is the first: all that it began with stays. */
const struct retirement retirement_table[] = { { .method = NULL } };

static void add_headers(const struct retirement *row, struct api_reply *reply)
{
    char text[CLOCK_HTTP_SIZE];
    char date[32];

    (void)snprintf(date, sizeof(date), "@%" PRId64, row->deprecated_s);
    api_reply_header(reply, "Deprecation", date);
    if (row->sunset_s != 0) {
        api_reply_header(reply, "Sunset", clock_format_http(row->sunset_s * MS_PER_S, text));
    }
    if (row->link != NULL) {
        CLEANUP_FREE char *link = alloc_printf("<%s>; rel=\"deprecation\"", row->link);

        api_reply_header(reply, "Link", link);
    }
}

void retirement_tell(const struct retirement *table, const char *method, const char *pattern,
                     struct api_reply *reply)
{
    for (const struct retirement *row = table; row->method != NULL; row++) {
        if (text_equal(row->method, method) && text_equal(row->pattern, pattern)) {
            add_headers(row, reply);
        }
    }
}
