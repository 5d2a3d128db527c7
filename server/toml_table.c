/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find a table in TOML, and change its lines alone.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base.
 */
#include "server/toml_table.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/text.h"

#define KEY_SIZE 256

struct scan {
    const char *text;
    size_t size;
    const struct toml_table *table;
    char in[KEY_SIZE]; /* the table that the line stands in, "": none */
    bool found;
    size_t line; /* where it begins, with its blanks */
    struct buf *out;
    struct err *err;
};

static int broken(const struct scan *scan, size_t at, const char *what)
{
    size_t line = 1;

    for (size_t i = 0; i < at && i < scan->size; i++) {
        line += scan->text[i] == '\n';
    }
    return err_set(scan->err, ERR_BAD_VALUE, 0, "line %zu: %s", line, what);
}

static bool follows(const struct scan *scan, size_t at, const char *word)
{
    const size_t length = strlen(word);

    return scan->size - at >= length && memcmp(scan->text + at, word, length) == 0;
}

static size_t line_end(const struct scan *scan, size_t at)
{
    const char *newline = memchr(scan->text + at, '\n', scan->size - at);

    return newline == NULL ? scan->size : (size_t)(newline - scan->text) + 1;
}

/* Behind a string that begins here; 0: it has no end. */
static size_t skip_string(const struct scan *scan, size_t at)
{
    const char quote[] = { scan->text[at], '\0' };
    const char three[] = { quote[0], quote[0], quote[0], '\0' };
    const bool is_long = follows(scan, at, three);

    for (at += is_long ? 3 : 1; at < scan->size; at++) {
        if (quote[0] == '"' && scan->text[at] == '\\') {
            at++;
        } else if (follows(scan, at, is_long ? three : quote)) {
            at += is_long ? 3 : 1;
            /* One or two more quotes belong to the end of a long one. */
            while (is_long && at < scan->size && scan->text[at] == quote[0]) {
                at++;
            }
            return at;
        } else if (!is_long && scan->text[at] == '\n') {
            return 0;
        }
    }
    return 0;
}

/* The start of the next line behind a key and its value, which may take several; 0: no end. */
static size_t skip_entry(const struct scan *scan, size_t at)
{
    int depth = 0;

    while (at < scan->size) {
        const char here = scan->text[at];

        if (here == '"' || here == '\'') {
            at = skip_string(scan, at);
            if (at == 0) {
                return 0;
            }
            continue;
        }
        if (here == '#') {
            at = line_end(scan, at) - 1;
            if (at + 1 == scan->size && scan->text[at] != '\n') {
                return depth == 0 ? scan->size : 0;
            }
            continue;
        }
        depth += (here == '[' || here == '{') - (here == ']' || here == '}');
        at++;
        if (here == '\n' && depth <= 0) {
            return at;
        }
    }
    return depth == 0 ? at : 0;
}

/* A key without blanks and quotes, up to one of the characters of ends. False: it is too long. */
static bool read_key(const struct scan *scan, size_t at, const char *ends,
                     char out[static KEY_SIZE])
{
    size_t length = 0;

    for (; at < scan->size && strchr(ends, scan->text[at]) == NULL; at++) {
        if (strchr(" \t\"'", scan->text[at]) == NULL) {
            if (length + 1 == KEY_SIZE) {
                return false;
            }
            out[length++] = scan->text[at];
        }
    }
    out[length] = '\0';
    return true;
}

static bool is_own_table(const struct scan *scan)
{
    char wanted[KEY_SIZE];

    (void)snprintf(wanted, sizeof(wanted), "%s.%s", scan->table->parent, scan->table->name);
    return text_equal(scan->in, wanted);
}

static bool begins_key(const char *key, const char *name)
{
    const size_t length = strlen(name);

    return strncmp(key, name, length) == 0 && (key[length] == '\0' || key[length] == '.');
}

static bool is_own_key(const struct scan *scan, const char *key)
{
    for (const char *const *at = scan->table->keys; *at != NULL; at++) {
        if (begins_key(key, *at)) {
            return true;
        }
    }
    return false;
}

/* ---- lines ---- */

static int take_header(struct scan *scan, size_t at, size_t end)
{
    const size_t brackets = follows(scan, at, "[[") ? 2 : 1;

    if (memchr(scan->text + at, ']', end - at) == NULL ||
        !read_key(scan, at + brackets, "]\n#", scan->in)) {
        return broken(scan, at, "the name of a table has no end");
    }
    (void)buf_append(scan->out, scan->text + scan->line, end - scan->line);
    if (brackets == 1 && is_own_table(scan)) {
        if (scan->found) {
            return broken(scan, at, "this table is there twice");
        }
        scan->found = true;
        (void)buf_append_text(scan->out, scan->text[end - 1] == '\n' ? "" : "\n");
        (void)buf_append_text(scan->out, scan->table->lines);
    }
    return 0;
}

static int take_entry(struct scan *scan, size_t at, size_t *ret_end)
{
    const size_t end = skip_entry(scan, at);
    char key[KEY_SIZE];

    if (end == 0) {
        return broken(scan, at, "this has no end");
    }
    if (memchr(scan->text + at, '=', end - at) == NULL || !read_key(scan, at, "=\n#", key)) {
        return broken(scan, at, "this is neither a table nor a key with a value");
    }
    if ((scan->in[0] == '\0' && begins_key(key, scan->table->parent)) ||
        (text_equal(scan->in, scan->table->parent) && begins_key(key, scan->table->name))) {
        return broken(scan, at, "this form of the table can't be changed: write it as a table");
    }
    if (!is_own_table(scan) || !is_own_key(scan, key)) {
        (void)buf_append(scan->out, scan->text + scan->line, end - scan->line);
    }
    *ret_end = end;
    return 0;
}

static int take_line(struct scan *scan, size_t at, size_t *ret_end)
{
    size_t start = at;

    scan->line = at;
    while (start < scan->size && strchr(" \t\r", scan->text[start]) != NULL) {
        start++;
    }
    *ret_end = line_end(scan, at);
    if (start == scan->size || scan->text[start] == '\n' || scan->text[start] == '#') {
        (void)buf_append(scan->out, scan->text + at, *ret_end - at);
        return 0;
    }
    return scan->text[start] == '[' ? take_header(scan, start, *ret_end)
                                    : take_entry(scan, start, ret_end);
}

int toml_table_set(const char *text, size_t size, const struct toml_table *table, struct buf *out,
                   struct err *err)
{
    struct scan scan = { .text = text, .size = size, .table = table, .out = out, .err = err };
    size_t end = 0;

    if (memchr(text, '\0', size) != NULL) {
        return broken(&scan, 0, "the file holds a NUL byte");
    }
    for (size_t at = 0; at < size; at = end) {
        if (take_line(&scan, at, &end) < 0) {
            return -1;
        }
    }
    if (!scan.found) {
        (void)buf_append_text(out, size > 0 && text[size - 1] != '\n' ? "\n" : "");
        (void)buf_printf(out, "%s[%s.%s]\n%s", size > 0 ? "\n" : "", table->parent, table->name,
                         table->lines);
    }
    return 0;
}
