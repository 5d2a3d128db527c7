/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_out: writes strict JSON (RFC 8259) into a buffer, without a tree in between.
 *
 *     struct json_out json;
 *     json_out_init(&json, &reply->body);
 *     json_out_open(&json, '{');
 *     json_out_key(&json, "stdout");
 *     json_out_text(&json, data, size);
 *     json_out_close(&json, '}');
 *     if (json_out_failed(&json)) ...
 *
 * Commas are the writer's. Text becomes valid UTF-8 whatever it was. A failure (the buffer's
 * maximum) is remembered, later calls do nothing. Not thread-safe.
 */
#ifndef KERND_API_JSON_OUT_H
#define KERND_API_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct json_out {
    struct buf *out; /* borrowed */
    bool comma;      /* the next value needs one before it */
    bool failed;
};

void json_out_init(struct json_out *json, struct buf *out);
bool json_out_failed(const struct json_out *json);

/* '{' or '[', and the matching '}' or ']'. */
void json_out_open(struct json_out *json, char bracket);
void json_out_close(struct json_out *json, char bracket);

/* The name of the member whose value is written next: any text, repaired as json_out_text. */
void json_out_key(struct json_out *json, const char *name);
void json_out_key_bytes(struct json_out *json, const char *name, size_t size);

/*
 * A string: any bytes; each maximal ill-formed part becomes one U+FFFD. json_out_string takes a C
 * string, and NULL is written as null.
 */
void json_out_text(struct json_out *json, const void *data, size_t size);
void json_out_string(struct json_out *json, const char *text);

/* A string of base64 (RFC 4648 section 4). */
void json_out_base64(struct json_out *json, const void *data, size_t size);

void json_out_bool(struct json_out *json, bool value);
void json_out_null(struct json_out *json);
void json_out_whole(struct json_out *json, int64_t value);
void json_out_count(struct json_out *json, uint64_t value);
/* 15 significant digits; what is not finite is null. */
void json_out_number(struct json_out *json, double value);
/* Milliseconds with three decimals; a negative value (not measured) is null. */
void json_out_ms(struct json_out *json, double value);
/* RFC 3339 in UTC with milliseconds; 0 is null. */
void json_out_time(struct json_out *json, int64_t wall_ms);

/* A value that is JSON already: the caller has checked it (json_scan). */
void json_out_raw(struct json_out *json, const char *text, size_t size);

#endif
