/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write members of objects, name and value.
 * Owns: nothing.
 * Threads: one at a time.
 * May include: lib/base.
 */
#include "api/member_out.h"

#include <stddef.h>

void member_out_string(struct json_out *json, const char *name, const char *text)
{
    json_out_key(json, name);
    json_out_string(json, text);
}

void member_out_text(struct json_out *json, const char *name, const char *text)
{
    member_out_string(json, name, text == NULL || text[0] == '\0' ? NULL : text);
}

void member_out_bool(struct json_out *json, const char *name, bool value)
{
    json_out_key(json, name);
    json_out_bool(json, value);
}

void member_out_count(struct json_out *json, const char *name, uint64_t value)
{
    json_out_key(json, name);
    json_out_count(json, value);
}

void member_out_measured(struct json_out *json, const char *name, int64_t value)
{
    json_out_key(json, name);
    if (value < 0) {
        json_out_null(json);
    } else {
        json_out_whole(json, value);
    }
}

void member_out_cap(struct json_out *json, const char *name, double value)
{
    json_out_key(json, name);
    if (value > 0) {
        json_out_number(json, value);
    } else {
        json_out_null(json);
    }
}

void member_out_ms(struct json_out *json, const char *name, double value)
{
    json_out_key(json, name);
    json_out_ms(json, value);
}

void member_out_time(struct json_out *json, const char *name, int64_t wall_ms)
{
    json_out_key(json, name);
    json_out_time(json, wall_ms);
}
