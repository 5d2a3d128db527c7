/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: split and percent-decode paths and queries.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base.
 */
#include "api/decode.h"

#include <string.h>

#include "lib/base/text.h"

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* At a '%': the byte it stands for, or -1. */
static int escaped_byte(const char *at)
{
    int high = hex_value(at[1]);
    int low = high < 0 ? -1 : hex_value(at[2]);

    return low < 0 ? -1 : high * 16 + low;
}

/* ---- path ---- */

static bool is_plain(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F) {
            return false;
        }
    }
    return text_utf8_valid(text, size);
}

static int bad_path(struct err *err, const char *what)
{
    return err_set(err, ERR_BAD_PATH, 0, "the path of the URL %s", what);
}

/* Decodes up to the next slash or the end. Returns where it stopped, NULL with err. */
static const char *decode_segment(const char *raw, char *out, size_t *ret_size, struct err *err)
{
    size_t size = 0;

    while (*raw != '\0' && *raw != '/') {
        int byte = *raw == '%' ? escaped_byte(raw) : (unsigned char)*raw;

        if (byte <= 0 || byte == '/') {
            (void)bad_path(err, byte < 0      ? "has a percent sign without two hexadecimal digits"
                                : byte == '/' ? "has an encoded slash"
                                              : "has an encoded NUL byte");
            return NULL;
        }
        raw += *raw == '%' ? 3 : 1;
        out[size++] = (char)byte;
    }
    if ((size == 1 && out[0] == '.') || (size == 2 && memcmp(out, "..", 2) == 0)) {
        (void)bad_path(err, "has a \".\" or \"..\" segment");
        return NULL;
    }
    if (size == 0) {
        (void)err_set(err, ERR_ROUTE_NOT_FOUND, 0, "the path of the URL has an empty segment");
        (void)err_remedy(err, "leave out double slashes and the slash at the end");
        return NULL;
    }
    *ret_size = size;
    return raw;
}

int decode_path(const char *raw, struct decode_path *ret_path, struct err *err)
{
    ret_path->size = 0;
    ret_path->count = 0;
    if (*raw != '/') {
        return bad_path(err, "does not start with a slash");
    }
    /* Decoding never makes it longer. */
    if (strlen(raw) > DECODE_PATH_MAX) {
        return err_set(err, ERR_URI_TOO_LONG, 0, "the path of the URL is above %d bytes",
                       DECODE_PATH_MAX);
    }
    while (*raw == '/' && !(ret_path->count == 0 && raw[1] == '\0')) {
        size_t size = 0;
        char *out = NULL;

        if (ret_path->count > 0) {
            ret_path->text[ret_path->size++] = '/';
        }
        out = ret_path->text + ret_path->size;
        raw = decode_segment(raw + 1, out, &size, err);
        if (raw == NULL) {
            return -1;
        }
        if (ret_path->count < DECODE_SEGMENTS_MAX) {
            ret_path->segments[ret_path->count] =
                (struct decode_segment){ .text = out, .size = size, .plain = is_plain(out, size) };
        }
        ret_path->size += size;
        ret_path->count++;
    }
    ret_path->text[ret_path->size] = '\0';
    return 0;
}

/* ---- query ---- */

static int bad_parameter(struct err *err, enum err_code code, const char *name, const char *what)
{
    return err_set(err, code, 0, "the query parameter \"%.64s\" %s", name, what);
}

/* Decodes in place. 0, or -1 on a bad escape, a NUL, or bytes that are not UTF-8 but should be. */
static int decode_form(char *text, bool any_bytes)
{
    const char *from = text;
    char *to = text;

    while (*from != '\0') {
        int byte = *from == '%' ? escaped_byte(from) : *from == '+' ? ' ' : (unsigned char)*from;

        if (byte <= 0) {
            return -1;
        }
        from += *from == '%' ? 3 : 1;
        *to++ = (char)byte;
    }
    *to = '\0';
    return any_bytes || text_utf8_valid(text, (size_t)(to - text)) ? 0 : -1;
}

static bool is_known(const char *const *known, const char *name, bool *ret_any_bytes)
{
    for (; *known != NULL; known++) {
        *ret_any_bytes = **known == '*';
        if (text_equal(*known + (*ret_any_bytes ? 1 : 0), name)) {
            return true;
        }
    }
    return false;
}

static int add_parameter(struct decode_query *query, const char *const *known, char *pair,
                         struct err *err)
{
    char *value = strchr(pair, '=');
    bool any_bytes = false;

    if (value == NULL) {
        value = pair + strlen(pair);
    } else {
        *value++ = '\0';
    }
    if (decode_form(pair, false) < 0 || !is_known(known, pair, &any_bytes)) {
        return bad_parameter(err, ERR_UNKNOWN_FIELD, pair, "does not exist here");
    }
    if (decode_form(value, any_bytes) < 0) {
        return bad_parameter(err, ERR_BAD_VALUE, pair, "has a bad escape or is not UTF-8");
    }
    if (decode_query_text(query, pair) != NULL) {
        return bad_parameter(err, ERR_BAD_VALUE, pair, "is given twice");
    }
    /* Names are known and given once, but there may be more of them than room. */
    if (query->count == DECODE_PARAMETERS_MAX) {
        return bad_parameter(err, ERR_BAD_VALUE, pair, "is one too many");
    }
    query->parameters[query->count].name = pair;
    query->parameters[query->count].value = value;
    query->count++;
    return 0;
}

int decode_query(const char *raw, const char *const *known, struct decode_query *ret_query,
                 struct err *err)
{
    size_t size = strlen(raw);
    char *at = ret_query->text;

    ret_query->count = 0;
    if (size > DECODE_QUERY_MAX) {
        return err_set(err, ERR_URI_TOO_LONG, 0, "the query of the URL is above %d bytes",
                       DECODE_QUERY_MAX);
    }
    memcpy(ret_query->text, raw, size + 1);
    while (*at != '\0') {
        char *end = at + strcspn(at, "&");
        bool last = *end == '\0';

        *end = '\0';
        if (*at != '\0' && add_parameter(ret_query, known, at, err) < 0) {
            return -1;
        }
        at = last ? end : end + 1;
    }
    return 0;
}

const char *decode_query_text(const struct decode_query *query, const char *name)
{
    for (size_t i = 0; i < query->count; i++) {
        if (text_equal(query->parameters[i].name, name)) {
            return query->parameters[i].value;
        }
    }
    return NULL;
}

int decode_query_bool(const struct decode_query *query, const char *name, bool *ret_value,
                      struct err *err)
{
    const char *text = decode_query_text(query, name);

    if (text == NULL) {
        return 0;
    }
    if (text_equal(text, "true") || text_equal(text, "1") || *text == '\0') {
        *ret_value = true;
    } else if (text_equal(text, "false") || text_equal(text, "0")) {
        *ret_value = false;
    } else {
        return bad_parameter(err, ERR_BAD_VALUE, name, "must be true or false");
    }
    return 0;
}

int decode_query_count(const struct decode_query *query, const char *name,
                       const struct decode_range *range, uint64_t *ret_value, struct err *err)
{
    const char *text = decode_query_text(query, name);
    uint64_t value = 0;

    if (text == NULL) {
        return 0;
    }
    if (text_parse_u64(text, &value) < 0 || value < range->min || value > range->max) {
        return err_set(err, ERR_BAD_VALUE, 0,
                       "the query parameter \"%.64s\" must be a whole number from %llu to %llu",
                       name, (unsigned long long)range->min, (unsigned long long)range->max);
    }
    *ret_value = value;
    return 0;
}
