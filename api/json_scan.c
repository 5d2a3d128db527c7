/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: check JSON text against the grammar, byte by byte.
 * Owns: the list of names of the objects that are open.
 * Threads: any (pure functions).
 * May include: lib/base.
 */
#include "api/json_scan.h"

#include <float.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/json_cursor.h"
#include "api/json_string.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/strv.h"

struct name {
    const char *data; /* into the text, or into the decoded ones */
    size_t size;
    const char *at; /* where it stands */
};

struct scan {
    struct json_cursor cursor;
    struct json_scan_bounds bounds;
    size_t values;
    struct name *names; /* of all open objects, outermost first */
    size_t name_count;
    size_t name_capacity;
    struct strv decoded; /* names that were written with escapes */
};

static int scan_value(struct scan *scan, unsigned depth);

static int fault(struct scan *scan, const char *at, const char *what)
{
    return json_cursor_fault(&scan->cursor, at, what);
}

static bool take(struct scan *scan, char c)
{
    return json_cursor_take(&scan->cursor, c);
}

/* ---- numbers and words ---- */

static bool skip_digits(struct scan *scan)
{
    const char *from = scan->cursor.at;

    while (!json_cursor_at_end(&scan->cursor) && *scan->cursor.at >= '0' &&
           *scan->cursor.at <= '9') {
        scan->cursor.at++;
    }
    return scan->cursor.at > from;
}

/* The exponent behind "e" or "E", cut to a size that is out of all ranges anyway. */
static long read_exponent(const char *at, const char *end)
{
    bool negative = *at == '-';
    long exponent = 0;

    for (at += *at == '-' || *at == '+' ? 1 : 0; at < end; at++) {
        exponent = exponent < 1000000 ? exponent * 10 + (*at - '0') : exponent;
    }
    return negative ? -exponent : exponent;
}

/*
 * Is this number 10^308 or more? A double ends soon above that, and readers differ in what they
 * make of what it can't hold. The text is a number by the grammar.
 */
static bool is_huge(const char *at, const char *end)
{
    long place = 0;        /* of the digit, the last one before the point being 0 */
    long first = LONG_MIN; /* place of the first digit that is not 0 */
    long exponent = 0;
    const char *digits = at + (*at == '-' ? 1 : 0);

    for (at = digits; at < end && *at >= '0' && *at <= '9'; at++) {
        place++;
    }
    for (at = digits; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at != '.') {
            place--;
            first = first == LONG_MIN && *at != '0' ? place : first;
        }
    }
    if (at < end) {
        exponent = read_exponent(at + 1, end);
    }
    return first != LONG_MIN && first + exponent >= DBL_MAX_10_EXP;
}

static int scan_number(struct scan *scan)
{
    const char *from = scan->cursor.at;
    const char *digits = NULL;

    (void)take(scan, '-');
    digits = scan->cursor.at;
    if (!skip_digits(scan)) {
        return fault(scan, from, "a minus sign without a number");
    }
    if (*digits == '0' && scan->cursor.at - digits > 1) {
        return fault(scan, from, "a number with a leading zero");
    }
    if (take(scan, '.') && !skip_digits(scan)) {
        return fault(scan, from, "a number that ends in its point");
    }
    if (take(scan, 'e') || take(scan, 'E')) {
        if (!take(scan, '+')) {
            (void)take(scan, '-');
        }
        if (!skip_digits(scan)) {
            return fault(scan, from, "a number without digits in its exponent");
        }
    }
    if (is_huge(from, scan->cursor.at)) {
        return fault(scan, from, "a number of 1e308 or more");
    }
    return 0;
}

static int scan_word(struct scan *scan)
{
    static const char *const words[] = { "true", "false", "null" };
    size_t left = (size_t)(scan->cursor.end - scan->cursor.at);

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t size = strlen(words[i]);

        if (left >= size && memcmp(scan->cursor.at, words[i], size) == 0) {
            scan->cursor.at += size;
            return 0;
        }
    }
    if (*scan->cursor.at == '\'') {
        return fault(scan, scan->cursor.at, "single quotes (JSON strings take double quotes)");
    }
    if (*scan->cursor.at == '/') {
        return fault(scan, scan->cursor.at, "a comment (JSON has none)");
    }
    return fault(scan, scan->cursor.at, "a value was expected here");
}

/* ---- objects and arrays ---- */

static int compare_names(const void *left, const void *right)
{
    const struct name *a = left;
    const struct name *b = right;
    size_t common = a->size < b->size ? a->size : b->size;
    int order = common == 0 ? 0 : memcmp(a->data, b->data, common);

    if (order != 0) {
        return order;
    }
    return a->size < b->size ? -1 : a->size > b->size ? 1 : a->at < b->at ? -1 : a->at > b->at;
}

/* Sorting, not hashing: no choice of names makes it slower than n log n. */
static int check_names(struct scan *scan, size_t first)
{
    struct name *names = scan->names + first;
    size_t count = scan->name_count - first;

    if (count > 1) {
        qsort(names, count, sizeof(*names), compare_names);
    }
    for (size_t i = 1; i < count; i++) {
        if (names[i].size == names[i - 1].size &&
            memcmp(names[i].data, names[i - 1].data, names[i].size) == 0) {
            return fault(scan, names[i].at, "a name that this object has already");
        }
    }
    scan->name_count = first;
    return 0;
}

/* What a name that was written with escapes says. */
static int decode_name(struct scan *scan, struct name *name)
{
    CLEANUP_BUF struct buf decoded = BUF_INIT(SIZE_MAX / 2);

    scan->cursor.at = name->at;
    if (json_string_scan(&scan->cursor, &decoded) < 0) {
        return -1;
    }
    strv_add(&scan->decoded, decoded.data);
    name->data = scan->decoded.items[scan->decoded.count - 1];
    name->size = decoded.size;
    return 0;
}

static int scan_name(struct scan *scan)
{
    const char *from = scan->cursor.at;
    struct name name = { .data = from + 1, .at = from };

    if (!json_cursor_is(&scan->cursor, '"')) {
        return fault(scan, from, "a name in double quotes was expected here");
    }
    if (json_string_scan(&scan->cursor, NULL) < 0) {
        return -1;
    }
    name.size = (size_t)(scan->cursor.at - from) - 2;
    if (memchr(name.data, '\\', name.size) != NULL && decode_name(scan, &name) < 0) {
        return -1;
    }
    if (scan->name_count == scan->name_capacity) {
        scan->name_capacity = scan->name_capacity == 0 ? 32 : scan->name_capacity * 2;
        scan->names = alloc_resize(scan->names, scan->name_capacity, sizeof(*scan->names));
    }
    scan->names[scan->name_count++] = name;
    return 0;
}

/* After a member or element: true when there is another one, false at the closing bracket. */
static int scan_comma(struct scan *scan, char closing, bool *ret_more)
{
    json_cursor_skip_blanks(&scan->cursor);
    if (take(scan, closing)) {
        *ret_more = false;
        return 0;
    }
    if (!take(scan, ',')) {
        return fault(scan, scan->cursor.at, "a comma or a closing bracket was expected here");
    }
    json_cursor_skip_blanks(&scan->cursor);
    if (json_cursor_is(&scan->cursor, closing)) {
        return fault(scan, scan->cursor.at, "a comma before a closing bracket");
    }
    *ret_more = true;
    return 0;
}

static int scan_object(struct scan *scan, unsigned depth)
{
    size_t first = scan->name_count;
    bool more = true;

    scan->cursor.at++;
    json_cursor_skip_blanks(&scan->cursor);
    if (take(scan, '}')) {
        return 0;
    }
    while (more) {
        if (scan_name(scan) < 0) {
            return -1;
        }
        json_cursor_skip_blanks(&scan->cursor);
        if (!take(scan, ':')) {
            return fault(scan, scan->cursor.at, "a colon was expected here");
        }
        if (scan_value(scan, depth) < 0 || scan_comma(scan, '}', &more) < 0) {
            return -1;
        }
    }
    return check_names(scan, first);
}

static int scan_array(struct scan *scan, unsigned depth)
{
    bool more = true;

    scan->cursor.at++;
    json_cursor_skip_blanks(&scan->cursor);
    if (take(scan, ']')) {
        return 0;
    }
    while (more) {
        if (scan_value(scan, depth) < 0 || scan_comma(scan, ']', &more) < 0) {
            return -1;
        }
    }
    return 0;
}

static int scan_value(struct scan *scan, unsigned depth)
{
    json_cursor_skip_blanks(&scan->cursor);
    if (json_cursor_at_end(&scan->cursor)) {
        return fault(scan, scan->cursor.at, "the text ends where a value was expected");
    }
    if (++scan->values > scan->bounds.values) {
        return fault(scan, scan->cursor.at, "more values than are allowed");
    }
    switch (*scan->cursor.at) {
    case '"':
        return json_string_scan(&scan->cursor, NULL);
    case '{':
    case '[':
        if (depth >= scan->bounds.depth || depth >= JSON_SCAN_DEPTH_MAX) {
            return fault(scan, scan->cursor.at, "nested too deeply");
        }
        return *scan->cursor.at == '{' ? scan_object(scan, depth + 1) : scan_array(scan, depth + 1);
    case '-':
    case '0' ... '9':
        return scan_number(scan);
    default:
        return scan_word(scan);
    }
}

static int tell(const struct json_cursor *cursor, const char *start, struct err *err)
{
    size_t line = 1;
    const char *line_start = start;

    for (const char *p = start; p < cursor->fault_at; p++) {
        if (*p == '\n') {
            line++;
            line_start = p + 1;
        }
    }
    return err_set(err, ERR_BAD_JSON, 0, "not strict JSON at line %zu, column %zu (byte %zu): %s",
                   line, (size_t)(cursor->fault_at - line_start) + 1,
                   (size_t)(cursor->fault_at - start), cursor->fault);
}

static int scan_all(struct scan *scan)
{
    struct json_cursor *cursor = &scan->cursor;

    if (cursor->end - cursor->at >= 3 && memcmp(cursor->at, "\xEF\xBB\xBF", 3) == 0) {
        return fault(scan, cursor->at, "a byte order mark");
    }
    if (scan_value(scan, 0) < 0) {
        return -1;
    }
    json_cursor_skip_blanks(cursor);
    if (!json_cursor_at_end(cursor)) {
        return fault(scan, cursor->at,
                     *cursor->at == '/' ? "a comment (JSON has none)"
                                        : "more text after the value");
    }
    return 0;
}

int json_scan(const char *text, size_t size, const struct json_scan_bounds *bounds, struct err *err)
{
    struct scan scan = { .cursor = { .at = text, .end = text + size }, .bounds = *bounds };
    int result = scan_all(&scan);

    free(scan.names);
    strv_done(&scan.decoded);
    return result < 0 ? tell(&scan.cursor, text, err) : 0;
}
