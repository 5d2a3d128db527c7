/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_cursor: a place in JSON text that is being checked, and the first fault found. Inline.
 */
#ifndef KERND_API_JSON_CURSOR_H
#define KERND_API_JSON_CURSOR_H

#include <stdbool.h>
#include <stddef.h>

struct json_cursor {
    const char *at;
    const char *end;
    const char *fault; /* static text, NULL: none */
    const char *fault_at;
};

/* Returns -1. */
static inline int json_cursor_fault(struct json_cursor *cursor, const char *at, const char *what)
{
    cursor->fault = what;
    cursor->fault_at = at;
    return -1;
}

static inline bool json_cursor_at_end(const struct json_cursor *cursor)
{
    return cursor->at == cursor->end;
}

static inline bool json_cursor_is(const struct json_cursor *cursor, char c)
{
    return !json_cursor_at_end(cursor) && *cursor->at == c;
}

/* Steps over c if it stands there. */
static inline bool json_cursor_take(struct json_cursor *cursor, char c)
{
    if (!json_cursor_is(cursor, c)) {
        return false;
    }
    cursor->at++;
    return true;
}

static inline void json_cursor_skip_blanks(struct json_cursor *cursor)
{
    while (json_cursor_is(cursor, ' ') || json_cursor_is(cursor, '\n') ||
           json_cursor_is(cursor, '\r') || json_cursor_is(cursor, '\t')) {
        cursor->at++;
    }
}

#endif
