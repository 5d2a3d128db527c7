/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: check JSON strings: escapes, surrogates, control characters, UTF-8.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base.
 */
#include "api/json_string.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/text.h"

/* Four hexadecimal digits; -1 if they are not. */
static int32_t read_hex(struct json_cursor *cursor)
{
    int32_t value = 0;

    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        const char *found =
            json_cursor_at_end(cursor) || *cursor->at == '\0' ? NULL : strchr(digits, *cursor->at);
        int32_t digit = found == NULL ? -1 : (int32_t)(found - digits);

        if (digit < 0) {
            return -1;
        }
        value = value * 16 + (digit > 15 ? digit - 6 : digit);
        cursor->at++;
    }
    return value;
}

/* After "\u". The character, or -1 with err. */
static int32_t scan_unicode_escape(struct json_cursor *cursor, const char *from)
{
    int32_t high = read_hex(cursor);
    int32_t low = 0;

    if (high < 0) {
        return json_cursor_fault(cursor, from, "\\u needs four hexadecimal digits");
    }
    if (high < 0xD800 || high > 0xDFFF) {
        return high;
    }
    if (high < 0xDC00 && json_cursor_take(cursor, '\\') && json_cursor_take(cursor, 'u')) {
        low = read_hex(cursor);
    }
    if (low < 0xDC00 || low > 0xDFFF) {
        return json_cursor_fault(cursor, from, "half of a surrogate pair");
    }
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

static void append_utf8(struct buf *out, int32_t character)
{
    uint32_t c = (uint32_t)character;
    unsigned char bytes[4];
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = { 0, 0, 0xC0, 0xE0, 0xF0 };

    for (size_t i = size - 1; i > 0; i--) {
        bytes[i] = (unsigned char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    bytes[0] = (unsigned char)(leads[size] | c);
    (void)buf_append(out, bytes, size);
}

/* The character that an escape stands for, -1 with err. cursor->at is behind the backslash. */
static int32_t scan_escape(struct json_cursor *cursor)
{
    static const char pairs[] = "\"\"\\\\//b\bf\fn\nr\rt\t"; /* letter, character */
    const char *from = cursor->at - 1;

    if (json_cursor_at_end(cursor)) {
        return json_cursor_fault(cursor, from, "the text ends inside a string");
    }
    if (json_cursor_take(cursor, 'u')) {
        return scan_unicode_escape(cursor, from);
    }
    for (size_t i = 0; i + 1 < sizeof(pairs); i += 2) {
        if (json_cursor_take(cursor, pairs[i])) {
            return pairs[i + 1];
        }
    }
    return json_cursor_fault(cursor, from, "an escape that JSON does not have");
}

/* Skips characters that stand for themselves. */
static int scan_plain(struct json_cursor *cursor)
{
    while (!json_cursor_at_end(cursor) && *cursor->at != '"' && *cursor->at != '\\') {
        bool valid = true;

        if ((unsigned char)*cursor->at < 0x20) {
            return json_cursor_fault(
                cursor, cursor->at,
                "a raw control character in a string (write it as an escape, like \\n)");
        }
        if ((unsigned char)*cursor->at < 0x80) {
            cursor->at++;
            continue;
        }
        size_t step = text_utf8_step(cursor->at, (size_t)(cursor->end - cursor->at), &valid);

        if (!valid) {
            return json_cursor_fault(cursor, cursor->at, "a byte that is not UTF-8");
        }
        cursor->at += step;
    }
    return 0;
}

int json_string_scan(struct json_cursor *cursor, struct buf *decoded)
{
    const char *opening = cursor->at++;

    while (!json_cursor_take(cursor, '"')) {
        const char *from = cursor->at;
        int32_t character = 0;

        if (scan_plain(cursor) < 0) {
            return -1;
        }
        if (decoded != NULL) {
            (void)buf_append(decoded, from, (size_t)(cursor->at - from));
        }
        if (json_cursor_at_end(cursor)) {
            return json_cursor_fault(cursor, opening, "a string that does not end");
        }
        if (!json_cursor_take(cursor, '\\')) {
            continue;
        }
        character = scan_escape(cursor);
        if (character < 0) {
            return -1;
        }
        if (decoded != NULL && character == 0) {
            return json_cursor_fault(cursor, opening, "a NUL character in a name");
        }
        if (decoded != NULL) {
            append_utf8(decoded, character);
        }
    }
    return 0;
}
