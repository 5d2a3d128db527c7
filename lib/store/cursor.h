/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor: where the next page of a list by time starts, as a text of letters, digits, ".", "_",
 * "-". Pure functions, any thread.
 */
#ifndef KERND_STORE_CURSOR_H
#define KERND_STORE_CURSOR_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/store/store.h"

struct cursor {
    int64_t created_ms;
    char id[STORE_ID_SIZE];
};

/* 0, or -1 BAD_CURSOR. */
int cursor_parse(const char *text, struct cursor *ret_cursor, struct err *err);

/* A fresh string. */
char *cursor_format(int64_t created_ms, const char *id);

#endif
