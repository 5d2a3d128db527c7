/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_string: checks one JSON string. Pure; any thread.
 */
#ifndef KERND_API_JSON_STRING_H
#define KERND_API_JSON_STRING_H

#include "api/json_cursor.h"
#include "lib/base/buf.h"

/*
 * The cursor stands at the opening quote; behind the closing one afterwards. With decoded, what the
 * string says is appended there, and a \u0000 is refused. 0, or -1 with the cursor's fault set.
 */
int json_string_scan(struct json_cursor *cursor, struct buf *decoded);

#endif
