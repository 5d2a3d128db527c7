/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: strings, numbers and UTF-8 as they come from outside.
 * Owns: nothing; the only file that calls strtod.
 * Threads: any (pure functions).
 * May include: libc.
 */
#include "lib/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_NUMBER 63

bool text_equal(const char *a, const char *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    return strcmp(a, b) == 0;
}

bool text_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool text_ends_with(const char *text, const char *suffix)
{
    size_t length = strlen(text);
    size_t suffix_length = strlen(suffix);

    return length >= suffix_length && strcmp(text + length - suffix_length, suffix) == 0;
}

bool text_equal_constant_time(const void *a, const void *b, size_t size)
{
    const volatile unsigned char *left = a;
    const volatile unsigned char *right = b;
    unsigned difference = 0;

    for (size_t i = 0; i < size; i++) {
        difference |= (unsigned)(left[i] ^ right[i]);
    }
    return difference == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int text_parse_u64(const char *text, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (text == NULL || *text == '\0') {
        return -1;
    }
    for (; *text != '\0'; text++) {
        if (!is_digit(*text) || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value)) {
            return -1;
        }
    }
    *ret_value = value;
    return 0;
}

static const char *skip_digits(const char *text)
{
    while (is_digit(*text)) {
        text++;
    }
    return text;
}

static bool is_decimal(const char *text)
{
    const char *at = text + (*text == '-' ? 1 : 0);

    if (!is_digit(*at)) {
        return false;
    }
    at = skip_digits(at);
    if (*at == '.') {
        at++;
        if (!is_digit(*at)) {
            return false;
        }
        at = skip_digits(at);
    }
    return *at == '\0';
}

int text_parse_double(const char *text, double *ret_value)
{
    double value = 0;

    if (text == NULL || strnlen(text, LONGEST_NUMBER + 1) > LONGEST_NUMBER || !is_decimal(text)) {
        return -1;
    }
    value = strtod(text, NULL);
    if (!isfinite(value)) {
        return -1;
    }
    *ret_value = value;
    return 0;
}

/*
 * Length that the first byte promises (0: it can't be first), and the range of the second byte,
 * which is where overlong forms, surrogates and values past U+10FFFF show.
 */
static size_t sequence_of(unsigned char first, unsigned char *ret_low, unsigned char *ret_high)
{
    *ret_low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    *ret_high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xC2 || first > 0xF4) {
        return 0;
    }
    return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

size_t text_utf8_step(const void *data, size_t size, bool *ret_valid)
{
    const unsigned char *bytes = data;
    unsigned char low = 0;
    unsigned char high = 0;
    size_t length = sequence_of(bytes[0], &low, &high);
    size_t seen = 1;

    while (seen < length && seen < size && bytes[seen] >= low && bytes[seen] <= high) {
        seen++;
        low = 0x80;
        high = 0xBF;
    }
    *ret_valid = seen == length;
    return seen;
}

/* How many bytes from the start are ASCII, in steps of eight: most of what programs print. */
static size_t ascii_run(const char *bytes, size_t size)
{
    size_t at = 0;
    uint64_t eight = 0;

    for (; at + sizeof(eight) <= size; at += sizeof(eight)) {
        memcpy(&eight, bytes + at, sizeof(eight));
        if ((eight & UINT64_C(0x8080808080808080)) != 0) {
            break;
        }
    }
    return at;
}

/* How many bytes from the start are well-formed. */
static size_t valid_run(const char *bytes, size_t size)
{
    size_t at = ascii_run(bytes, size);
    bool valid = true;

    while (at < size) {
        size_t step = text_utf8_step(bytes + at, size - at, &valid);

        if (!valid) {
            break;
        }
        at += step;
        if (step == 1) {
            at += ascii_run(bytes + at, size - at);
        }
    }
    return at;
}

bool text_utf8_valid(const void *data, size_t size)
{
    return valid_run(data, size) == size;
}

int text_utf8_repair(struct buf *out, const void *data, size_t size)
{
    static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */
    const char *bytes = data;
    size_t before = out->size;
    size_t at = 0;
    bool valid = false;

    while (at < size) {
        size_t run = valid_run(bytes + at, size - at);

        if (buf_append(out, bytes + at, run) < 0) {
            goto full;
        }
        at += run;
        if (at < size) {
            if (buf_append_text(out, replacement) < 0) {
                goto full;
            }
            at += text_utf8_step(bytes + at, size - at, &valid);
        }
    }
    return 0;

full:
    buf_truncate(out, before);
    return -1;
}

size_t text_utf8_partial_tail(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    unsigned char low = 0;
    unsigned char high = 0;
    bool valid = false;

    for (size_t tail = size < 3 ? size : 3; tail > 0; tail--) {
        const unsigned char *start = bytes + size - tail;

        if (text_utf8_step(start, tail, &valid) == tail &&
            sequence_of(*start, &low, &high) > tail) {
            return tail;
        }
    }
    return 0;
}

#define BASE64_PADDING 64 /* its place behind the 64 digits */

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

int text_base64_encode(struct buf *out, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    size_t groups = size / 3 + (size % 3 == 0 ? 0 : 1);
    char *at = NULL;

    if (groups > SIZE_MAX / 4 || (at = buf_reserve(out, groups * 4)) == NULL) {
        return -1;
    }
    for (size_t i = 0; i < size; i += 3, at += 4) {
        size_t left = size - i;
        unsigned group = (unsigned)bytes[i] << 16;

        group |= left > 1 ? (unsigned)bytes[i + 1] << 8 : 0U;
        group |= left > 2 ? (unsigned)bytes[i + 2] : 0U;
        at[0] = base64_digits[group >> 18];
        at[1] = base64_digits[(group >> 12) & 63];
        at[2] = base64_digits[left > 1 ? (group >> 6) & 63 : BASE64_PADDING];
        at[3] = base64_digits[left > 2 ? group & 63 : BASE64_PADDING];
    }
    buf_commit(out, groups * 4);
    return 0;
}

/* 0 to 63, or -1. */
static int base64_value(char digit)
{
    if (digit >= 'A' && digit <= 'Z') {
        return digit - 'A';
    }
    if (digit >= 'a' && digit <= 'z') {
        return digit - 'a' + 26;
    }
    if (is_digit(digit)) {
        return digit - '0' + 52;
    }
    return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

/* One group of `count` digits (2 to 4) into count - 1 bytes. 0, or -1 on a bad digit or bits. */
static int base64_decode_group(const char *digits, size_t count, char *to)
{
    unsigned group = 0;
    unsigned unused = count == 4 ? 0 : count == 3 ? 0xFF : 0xFFFF;

    for (size_t i = 0; i < 4; i++) {
        int value = i < count ? base64_value(digits[i]) : 0;

        if (value < 0) {
            return -1;
        }
        group = group << 6 | (unsigned)value;
    }
    for (size_t i = 0; i + 1 < count; i++) {
        to[i] = (char)(group >> (16 - 8 * i) & 0xFF);
    }
    return (group & unused) == 0 ? 0 : -1;
}

int text_base64_decode(struct buf *out, const char *text, size_t size)
{
    size_t padding = 0;
    size_t bytes = 0;
    char *to = NULL;

    if (size % 4 != 0) {
        return -1;
    }
    if (size > 0 && text[size - 1] == '=') {
        padding = text[size - 2] == '=' ? 2 : 1;
    }
    bytes = size / 4 * 3 - padding;
    to = buf_reserve(out, bytes);
    if (to == NULL) {
        return -1;
    }
    for (size_t i = 0; i < size; i += 4, to += 3) {
        size_t digits = i + 4 == size ? 4 - padding : 4;

        if (base64_decode_group(text + i, digits, to) < 0) {
            buf_truncate(out, out->size);
            return -1;
        }
    }
    buf_commit(out, bytes);
    return 0;
}
