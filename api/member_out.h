/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member_out: members of JSON objects whose value is one thing: the name, and json_out's value of
 * that kind. Not thread-safe, as json_out.
 */
#ifndef KERND_API_MEMBER_OUT_H
#define KERND_API_MEMBER_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "api/json_out.h"

/* NULL is null. */
void member_out_string(struct json_out *json, const char *name, const char *text);
/* NULL and "" are null. */
void member_out_text(struct json_out *json, const char *name, const char *text);
void member_out_bool(struct json_out *json, const char *name, bool value);
void member_out_count(struct json_out *json, const char *name, uint64_t value);
/* What was not measured is negative, and null. */
void member_out_measured(struct json_out *json, const char *name, int64_t value);
/* A cap or a timer: 0 is none, and null. */
void member_out_cap(struct json_out *json, const char *name, double value);
/* As json_out_ms: negative is null. */
void member_out_ms(struct json_out *json, const char *name, double value);
/* As json_out_time: 0 is null. */
void member_out_time(struct json_out *json, const char *name, int64_t wall_ms);

#endif
