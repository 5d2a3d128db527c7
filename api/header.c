/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read request headers that steer a reply.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base.
 */
#include "api/header.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "lib/base/text.h"

#define ITEM_MAX 128 /* longer elements of a list are skipped */

/*
 * Copies the next element of a list, without blanks around it, into item. Commas and semicolons in
 * double quotes do not separate. Returns what follows, NULL at the end.
 */
static const char *next_item(const char *list, char separator, char item[static ITEM_MAX])
{
    bool quoted = false;
    const char *end = NULL;
    size_t size = 0;

    list += strspn(list, " \t");
    if (*list == '\0') {
        return NULL;
    }
    for (end = list; *end != '\0' && (quoted || *end != separator); end++) {
        if (*end == '\\' && quoted && end[1] != '\0') {
            end++;
        } else if (*end == '"') {
            quoted = !quoted;
        }
    }
    size = (size_t)(end - list);
    while (size > 0 && (list[size - 1] == ' ' || list[size - 1] == '\t')) {
        size--;
    }
    if (size >= ITEM_MAX) {
        size = 0;
    }
    memcpy(item, list, size);
    item[size] = '\0';
    return *end == '\0' ? end : end + 1;
}

/* ---- Accept ---- */

struct media_range {
    char type[ITEM_MAX];
    int quality; /* in thousandths */
    int weight;  /* 0: all, 1: a whole main type, 2: one type */
};

/* "0.5" in thousandths, -1 if it is not a qvalue. */
static int parse_quality(const char *text)
{
    int quality = 0;
    int scale = 100;

    if ((*text != '0' && *text != '1') || (text[1] != '\0' && text[1] != '.')) {
        return -1;
    }
    quality = (*text - '0') * 1000;
    for (text += text[1] == '.' ? 2 : 1; *text != '\0'; text++, scale /= 10) {
        if (*text < '0' || *text > '9' || scale == 0) {
            return -1;
        }
        quality += (*text - '0') * scale;
    }
    return quality > 1000 ? -1 : quality;
}

/* 0, or -1 when the element is malformed. Parameters other than q are not looked at. */
static int parse_media_range(const char *item, struct media_range *ret_range)
{
    char part[ITEM_MAX];
    const char *slash = NULL;
    const char *rest = next_item(item, ';', ret_range->type);

    slash = rest == NULL ? NULL : strchr(ret_range->type, '/');
    if (slash == NULL || slash == ret_range->type || slash[1] == '\0') {
        return -1;
    }
    ret_range->quality = 1000;
    while ((rest = next_item(rest, ';', part)) != NULL) {
        if (strncasecmp(part, "q=", 2) == 0) {
            ret_range->quality = parse_quality(part + 2);
        }
    }
    ret_range->weight = text_equal(ret_range->type, "*/*") ? 0 : text_equal(slash, "/*") ? 1 : 2;
    return ret_range->quality < 0 ? -1 : 0;
}

static bool range_covers(const struct media_range *range, const char *type)
{
    size_t main_size = strcspn(range->type, "/") + 1;

    if (range->weight == 0) {
        return true;
    }
    if (range->weight == 1) {
        return strncasecmp(range->type, type, main_size) == 0;
    }
    return strcasecmp(range->type, type) == 0;
}

/* The quality that the header gives to a type: that of the most specific element. */
static int quality_of(const char *accept, const char *type, bool *ret_readable)
{
    char item[ITEM_MAX];
    int quality = 0;
    int weight = -1;

    while ((accept = next_item(accept, ',', item)) != NULL) {
        struct media_range range;

        if (parse_media_range(item, &range) < 0) {
            continue;
        }
        *ret_readable = true;
        if (range.weight > weight && range_covers(&range, type)) {
            quality = range.quality;
            weight = range.weight;
        }
    }
    return quality;
}

int header_accept(const char *value, const char *const *offered)
{
    bool readable = false;
    int best = -1;
    int best_quality = 0;

    if (value == NULL) {
        return 0;
    }
    for (int i = 0; offered[i] != NULL; i++) {
        int quality = quality_of(value, offered[i], &readable);

        if (quality > best_quality) {
            best_quality = quality;
            best = i;
        }
    }
    return readable ? best : 0;
}

/* ---- Accept-Encoding ---- */

static int quality_of_coding(const char *item, char name[static ITEM_MAX])
{
    char part[ITEM_MAX];
    const char *rest = next_item(item, ';', name);
    int quality = 1000;

    while (rest != NULL && (rest = next_item(rest, ';', part)) != NULL) {
        if (strncasecmp(part, "q=", 2) == 0) {
            quality = parse_quality(part + 2);
        }
    }
    return quality;
}

bool header_takes_gzip(const char *value)
{
    char item[ITEM_MAX];
    char name[ITEM_MAX];
    int any = 0;

    while (value != NULL && (value = next_item(value, ',', item)) != NULL) {
        const int quality = quality_of_coding(item, name);

        if (strcasecmp(name, "gzip") == 0 || strcasecmp(name, "x-gzip") == 0) {
            return quality > 0;
        }
        if (text_equal(name, "*")) {
            any = quality;
        }
    }
    return any > 0;
}

/* ---- Prefer ---- */

void header_prefer(const char *value, struct header_preference *ret_preference)
{
    char item[ITEM_MAX];

    *ret_preference = (struct header_preference){ 0 };
    while (value != NULL && (value = next_item(value, ',', item)) != NULL) {
        if (strcasecmp(item, "respond-async") == 0) {
            ret_preference->respond_async = true;
        } else if (strncasecmp(item, "wait=", 5) == 0 && !ret_preference->wait_given &&
                   text_parse_u64(item + 5, &ret_preference->wait_s) == 0) {
            ret_preference->wait_given = true;
        }
    }
}

/* ---- Range ---- */

/* The last `suffix` bytes. */
static enum header_range last_bytes(const char *suffix, uint64_t size, uint64_t *ret_from,
                                    uint64_t *ret_length)
{
    uint64_t count = 0;

    if (text_parse_u64(suffix, &count) < 0) {
        return HEADER_RANGE_WHOLE;
    }
    if (count == 0 || size == 0) {
        return HEADER_RANGE_NOT_SATISFIABLE;
    }
    *ret_length = count < size ? count : size;
    *ret_from = size - *ret_length;
    return HEADER_RANGE_PART;
}

enum header_range header_range(const char *value, uint64_t size, uint64_t *ret_from,
                               uint64_t *ret_length)
{
    char first[ITEM_MAX];
    const char *dash = NULL;
    uint64_t from = 0;
    uint64_t to = UINT64_MAX;

    if (value == NULL || strncasecmp(value, "bytes=", 6) != 0 || strlen(value) >= ITEM_MAX) {
        return HEADER_RANGE_WHOLE;
    }
    value += 6;
    dash = strchr(value, '-');
    if (dash == NULL || strchr(value, ',') != NULL) {
        return HEADER_RANGE_WHOLE;
    }
    if (dash == value) {
        return last_bytes(dash + 1, size, ret_from, ret_length);
    }
    memcpy(first, value, (size_t)(dash - value));
    first[dash - value] = '\0';
    if (text_parse_u64(first, &from) < 0 ||
        (dash[1] != '\0' && text_parse_u64(dash + 1, &to) < 0) || to < from) {
        return HEADER_RANGE_WHOLE;
    }
    if (from >= size) {
        return HEADER_RANGE_NOT_SATISFIABLE;
    }
    *ret_from = from;
    *ret_length = (to < size ? to + 1 : size) - from;
    return HEADER_RANGE_PART;
}

/* ---- ETag ---- */

static bool etag_equal(const char *a, const char *b, bool weak)
{
    bool a_weak = text_starts_with(a, "W/");
    bool b_weak = text_starts_with(b, "W/");

    if (!weak && (a_weak || b_weak)) {
        return false;
    }
    return text_equal(a + (a_weak ? 2 : 0), b + (b_weak ? 2 : 0));
}

bool header_has_etag(const char *list, const char *etag, bool weak)
{
    char item[ITEM_MAX];

    while (list != NULL && (list = next_item(list, ',', item)) != NULL) {
        if (text_equal(item, "*") || etag_equal(item, etag, weak)) {
            return true;
        }
    }
    return false;
}
