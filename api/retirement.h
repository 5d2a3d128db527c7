/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retirement: tells callers of routes that are on their way out: Deprecation (RFC 9745), Sunset
 * (RFC 8594) and where to read on. Pure; any thread.
 */
#ifndef KERND_API_RETIREMENT_H
#define KERND_API_RETIREMENT_H

#include <stdint.h>

#include "api/api.h"

struct retirement {
    const char *method; /* NULL ends a table */
    const char *pattern;
    int64_t deprecated_s; /* seconds since 1970: from then on nobody should begin to use it */
    int64_t sunset_s;     /* from then on it may be gone; 0: not known yet */
    const char *link;     /* what to use instead; NULL: nothing is written about it */
};

/* The server's own table: its routes are marked "deprecated" in openapi.yaml, and no others. */
extern const struct retirement retirement_table[];

/* Adds the headers of a route's row, if it has one. */
void retirement_tell(const struct retirement *table, const char *method, const char *pattern,
                     struct api_reply *reply);

#endif
