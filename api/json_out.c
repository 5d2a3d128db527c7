/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write strict JSON.
 * Owns: nothing; the buffer is the caller's.
 * Threads: any (each writer belongs to one thread).
 * May include: lib/base.
 */
#include "api/json_out.h"

#include <math.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/digits.h"
#include "lib/base/text.h"

#define ESCAPE_MAX 6 /* a \u and four digits */
#define PIECE ((size_t)4096)
#define SHORT ((size_t)256) /* so long are names and most values; longer text is looked at once */
#define WHOLE_MAX 1e15      /* "%.15g" writes whole numbers below it with all their digits */

void json_out_init(struct json_out *json, struct buf *out)
{
    *json = (struct json_out){ .out = out };
}

bool json_out_failed(const struct json_out *json)
{
    return json->failed;
}

static void put(struct json_out *json, const char *data, size_t size)
{
    if (!json->failed && buf_append(json->out, data, size) < 0) {
        json->failed = true;
    }
}

static void begin_value(struct json_out *json)
{
    if (json->comma) {
        put(json, ",", 1);
    }
    json->comma = true;
}

void json_out_open(struct json_out *json, char bracket)
{
    begin_value(json);
    put(json, &bracket, 1);
    json->comma = false;
}

void json_out_close(struct json_out *json, char bracket)
{
    put(json, &bracket, 1);
    json->comma = true;
}

/* Writes the escape of one byte, at most ESCAPE_MAX bytes. Returns what is behind it. */
static char *write_escape(char *to, char c)
{
    static const char digits[] = "0123456789abcdef";
    static const char pairs[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* byte, letter */

    *to++ = '\\';
    for (size_t i = 0; i + 1 < sizeof(pairs); i += 2) {
        if (pairs[i] == c) {
            *to++ = pairs[i + 1];
            return to;
        }
    }
    *to++ = 'u';
    *to++ = '0';
    *to++ = '0';
    *to++ = digits[(unsigned char)c >> 4];
    *to++ = digits[(unsigned char)c & 15U];
    return to;
}

#define EVERY(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Is one of eight bytes below `limit`? Bytes from 0x80 on are not. */
static bool has_below(uint64_t eight, uint64_t limit)
{
    return ((eight - EVERY(limit)) & ~eight & EVERY(0x80)) != 0;
}

/* Is one of eight bytes a control character, a quote or a backslash? */
static bool must_be_escaped(uint64_t eight)
{
    return has_below(eight, 0x20) || has_below(eight ^ EVERY('"'), 1) ||
           has_below(eight ^ EVERY('\\'), 1);
}

/* Eight bytes at once, as long as none of them has to be escaped; how many bytes were copied. */
static size_t copy_plain(char *to, const char *text, size_t size)
{
    size_t at = 0;
    uint64_t eight = 0;

    for (; at + sizeof(eight) <= size; at += sizeof(eight)) {
        memcpy(&eight, text + at, sizeof(eight));
        if (must_be_escaped(eight)) {
            break;
        }
        memcpy(to + at, &eight, sizeof(eight));
    }
    return at;
}

static size_t escape(char *to, const char *text, size_t size)
{
    const char *start = to;
    size_t i = 0;

    while (i < size) {
        size_t plain = copy_plain(to, text + i, size - i);

        to += plain;
        i += plain;
        /* Whatever stopped that is within the next eight. */
        for (size_t end = i + 8 < size ? i + 8 : size; i < end; i++) {
            if ((unsigned char)text[i] < 0x20 || text[i] == '"' || text[i] == '\\') {
                to = write_escape(to, text[i]);
            } else {
                *to++ = text[i];
            }
        }
    }
    return (size_t)(to - start);
}

/* Quotes text that is valid UTF-8. In pieces, so that room for the worst case is never much. */
static void put_quoted(struct json_out *json, const char *text, size_t size)
{
    put(json, "\"", 1);
    while (size > 0 && !json->failed) {
        size_t piece = size < PIECE ? size : PIECE;
        char *room = buf_reserve(json->out, piece * ESCAPE_MAX);

        if (room == NULL) {
            json->failed = true;
            return;
        }
        buf_commit(json->out, escape(room, text, piece));
        text += piece;
        size -= piece;
    }
    put(json, "\"", 1);
}

/* Nothing in it has to be escaped or repaired: printable ASCII, as nearly all names and values. */
static bool is_plain(const char *text, size_t size)
{
    size_t at = 0;
    uint64_t eight = 0;

    for (; at + sizeof(eight) <= size; at += sizeof(eight)) {
        memcpy(&eight, text + at, sizeof(eight));
        if (must_be_escaped(eight) || (eight & EVERY(0x80)) != 0) {
            return false;
        }
    }
    for (; at < size; at++) {
        unsigned char c = (unsigned char)text[at];

        if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') {
            return false;
        }
    }
    return true;
}

/* A comma if it takes one, plain text in quotes, what follows: in one step. */
static void put_plain(struct json_out *json, const char *text, size_t size, char behind)
{
    const size_t whole = size + 2 + (json->comma ? 1 : 0) + (behind != '\0' ? 1 : 0);
    char *room = json->failed ? NULL : buf_reserve(json->out, whole);
    char *at = room;

    if (room == NULL) {
        json->failed = true;
        return;
    }
    if (json->comma) {
        *at++ = ',';
    }
    *at++ = '"';
    memcpy(at, text, size);
    at += size;
    *at++ = '"';
    if (behind != '\0') {
        *at++ = behind;
    }
    buf_commit(json->out, whole);
}

static void put_text(struct json_out *json, const char *data, size_t size)
{
    CLEANUP_BUF struct buf repaired = BUF_INIT(json->out->max);

    begin_value(json);
    if (text_utf8_valid(data, size)) {
        put_quoted(json, data, size);
    } else if (text_utf8_repair(&repaired, data, size) == 0) {
        put_quoted(json, repaired.data, repaired.size);
    } else {
        json->failed = true;
    }
}

void json_out_key(struct json_out *json, const char *name)
{
    json_out_key_bytes(json, name, strlen(name));
}

void json_out_key_bytes(struct json_out *json, const char *name, size_t size)
{
    if (size <= SHORT && is_plain(name, size)) {
        put_plain(json, name, size, ':');
    } else {
        put_text(json, name, size);
        put(json, ":", 1);
    }
    json->comma = false;
}

void json_out_text(struct json_out *json, const void *data, size_t size)
{
    if (size == 0) {
        begin_value(json);
        put(json, "\"\"", 2);
    } else if (size <= SHORT && is_plain(data, size)) {
        put_plain(json, data, size, '\0');
        json->comma = true;
    } else {
        put_text(json, data, size);
    }
}

void json_out_string(struct json_out *json, const char *text)
{
    if (text == NULL) {
        json_out_null(json);
    } else {
        json_out_text(json, text, strlen(text));
    }
}

void json_out_base64(struct json_out *json, const void *data, size_t size)
{
    begin_value(json);
    put(json, "\"", 1);
    if (!json->failed && text_base64_encode(json->out, data, size) < 0) {
        json->failed = true;
    }
    put(json, "\"", 1);
}

void json_out_bool(struct json_out *json, bool value)
{
    begin_value(json);
    put(json, value ? "true" : "false", value ? 4 : 5);
}

void json_out_null(struct json_out *json)
{
    begin_value(json);
    put(json, "null", 4);
}

void json_out_whole(struct json_out *json, int64_t value)
{
    begin_value(json);
    if (!json->failed && digits_put_signed(json->out, value) < 0) {
        json->failed = true;
    }
}

void json_out_count(struct json_out *json, uint64_t value)
{
    begin_value(json);
    if (!json->failed && digits_put(json->out, value) < 0) {
        json->failed = true;
    }
}

void json_out_number(struct json_out *json, double value)
{
    if (!isfinite(value)) {
        json_out_null(json);
        return;
    }
    if (!signbit(value) && value < WHOLE_MAX && value == trunc(value)) {
        json_out_count(json, (uint64_t)value);
        return;
    }
    begin_value(json);
    if (!json->failed && buf_printf(json->out, "%.15g", value) < 0) {
        json->failed = true;
    }
}

void json_out_ms(struct json_out *json, double value)
{
    /* The upper bound is 30 years, and keeps the conversion defined. */
    if (!(value >= 0 && value < 1e12)) {
        json_out_null(json);
        return;
    }
    begin_value(json);
    if (!json->failed &&
        digits_put_thousandths(json->out, (uint64_t)(value * 1000 + 0.5), true) < 0) {
        json->failed = true;
    }
}

void json_out_time(struct json_out *json, int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];

    json_out_string(json, wall_ms == 0 ? NULL : clock_format_utc(wall_ms, text));
}

void json_out_raw(struct json_out *json, const char *text, size_t size)
{
    begin_value(json);
    put(json, text, size);
}
