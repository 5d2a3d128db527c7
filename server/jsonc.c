/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find the place of a member in JSON with comments, and change the text there alone.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base.
 */
#include "server/jsonc.h"

#include <stdbool.h>
#include <string.h>

#include "lib/base/text.h"

#define DEPTH_MAX 64
#define BOM "\xEF\xBB\xBF"

struct scan {
    const char *text;
    size_t size;
    size_t at;
    bool failed;
    struct err *err;
};

static int broken(struct scan *scan, const char *what)
{
    size_t line = 1;

    scan->failed = true;
    for (size_t i = 0; i < scan->at && i < scan->size; i++) {
        line += scan->text[i] == '\n';
    }
    return err_set(scan->err, ERR_BAD_VALUE, 0, "line %zu: %s", line, what);
}

static char peek(const struct scan *scan)
{
    static const char end = '\0';

    return *(scan->at < scan->size ? &scan->text[scan->at] : &end);
}

static bool follows(const struct scan *scan, const char *word)
{
    const size_t length = strlen(word);

    return scan->size - scan->at >= length && memcmp(scan->text + scan->at, word, length) == 0;
}

/* ---- tokens ---- */

static int skip_comment(struct scan *scan)
{
    const bool is_line = follows(scan, "//");

    while (scan->at < scan->size && !(is_line ? peek(scan) == '\n' : follows(scan, "*/"))) {
        scan->at++;
    }
    if (is_line) {
        return 0;
    }
    if (scan->at >= scan->size) {
        return broken(scan, "a comment has no end");
    }
    scan->at += 2;
    return 0;
}

static int skip_blank(struct scan *scan)
{
    while (scan->at < scan->size) {
        if (strchr(" \t\r\n", peek(scan)) != NULL && peek(scan) != '\0') {
            scan->at++;
        } else if (!follows(scan, "//") && !follows(scan, "/*")) {
            break;
        } else if (skip_comment(scan) < 0) {
            return -1;
        }
    }
    return 0;
}

static int skip_string(struct scan *scan)
{
    scan->at++;
    while (scan->at < scan->size && peek(scan) != '"') {
        if ((unsigned char)peek(scan) < 0x20) {
            return broken(scan, "a string has no end");
        }
        scan->at += peek(scan) == '\\' ? 2 : 1;
    }
    if (scan->at >= scan->size) {
        scan->at = scan->size;
        return broken(scan, "a string has no end");
    }
    scan->at++;
    return 0;
}

static int skip_word(struct scan *scan)
{
    static const char *const words[] = { "true", "false", "null" };
    const size_t start = scan->at;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (follows(scan, words[i])) {
            scan->at += strlen(words[i]);
            return 0;
        }
    }
    while (peek(scan) != '\0' && strchr("+-.0123456789eE", peek(scan)) != NULL) {
        scan->at++;
    }
    return scan->at > start ? 0 : broken(scan, "a value is expected here");
}

/* ---- values ---- */

/* What is to be found in an object, and what was. Offsets. */
struct object {
    const char *name; /* NULL: nothing */
    bool found;
    size_t value; /* of the one that was found */
    size_t value_end;
    size_t open; /* its brace */
    size_t close;
    size_t last; /* behind the last value, 0: there is none */
    bool comma;  /* behind that */
};

static int skip_value(struct scan *scan, size_t depth);

static bool is_name(const struct scan *scan, size_t start, const char *name)
{
    const size_t length = strlen(name);

    return scan->at - start == length + 2 && memcmp(scan->text + start + 1, name, length) == 0;
}

static int skip_member(struct scan *scan, size_t depth, struct object *object)
{
    const size_t start = scan->at;
    bool wanted;
    size_t value;

    if (peek(scan) != '"') {
        return broken(scan, "the name of a member is expected here");
    }
    if (skip_string(scan) < 0) {
        return -1;
    }
    wanted = object->name != NULL && is_name(scan, start, object->name);
    if (skip_blank(scan) < 0 || peek(scan) != ':') {
        return broken(scan, "a colon is expected here");
    }
    scan->at++;
    if (skip_blank(scan) < 0) {
        return -1;
    }
    value = scan->at;
    if (wanted && object->found) {
        return broken(scan, "this name is there twice");
    }
    if (skip_value(scan, depth + 1) < 0) {
        return -1;
    }
    if (wanted) {
        object->found = true;
        object->value = value;
        object->value_end = scan->at;
    }
    return 0;
}

/* Of an object, or of an array when object is NULL. From its bracket to behind the other one. */
static int skip_items(struct scan *scan, size_t depth, struct object *object)
{
    const char close = object != NULL ? '}' : ']';
    struct object items = { .open = scan->at, .name = object != NULL ? object->name : NULL };

    if (depth > DEPTH_MAX) {
        return broken(scan, "this is nested too deeply");
    }
    scan->at++;
    while (skip_blank(scan) == 0 && peek(scan) != close) {
        if (items.last > 0 && !items.comma) {
            return broken(scan, "a comma is expected here");
        }
        if ((object != NULL ? skip_member(scan, depth, &items) : skip_value(scan, depth + 1)) < 0) {
            return -1;
        }
        items.last = scan->at;
        if (skip_blank(scan) < 0) {
            return -1;
        }
        items.comma = peek(scan) == ',';
        scan->at += items.comma;
    }
    if (peek(scan) != close) {
        return scan->failed ? -1 : broken(scan, "it has no end");
    }
    items.close = scan->at++;
    if (object != NULL) {
        *object = items;
    }
    return 0;
}

static int skip_value(struct scan *scan, size_t depth)
{
    struct object nothing = { .name = NULL };

    switch (peek(scan)) {
    case '{':
        return skip_items(scan, depth, &nothing);
    case '[':
        return skip_items(scan, depth, NULL);
    case '"':
        return skip_string(scan);
    default:
        return skip_word(scan);
    }
}

/* ---- changing ---- */

static void add(struct buf *out, const struct scan *scan, size_t from, size_t to)
{
    (void)buf_append(out, scan->text + from, to - from);
}

static size_t trimmed(const struct scan *scan, size_t at)
{
    while (at > 0 && strchr(" \t\r\n", scan->text[at - 1]) != NULL) {
        at--;
    }
    return at;
}

/* A new member behind the last one, and behind the comments that follow it. */
static void insert(struct buf *out, const struct scan *scan, const struct object *object,
                   const char *indent, const char *member)
{
    const size_t place = trimmed(scan, object->close);
    const char *deeper = "  ";

    if (object->last > 0) {
        add(out, scan, 0, object->last);
        (void)buf_append_text(out, object->comma ? "" : ",");
        add(out, scan, object->last, place);
    } else {
        add(out, scan, 0, place);
    }
    (void)buf_printf(out, "\n%s%s%s", indent, deeper, member);
    if (memchr(scan->text + place, '\n', object->close - place) == NULL) {
        (void)buf_printf(out, "\n%s", indent);
        add(out, scan, object->close, scan->size);
    } else {
        add(out, scan, place, scan->size);
    }
}

static int change(struct scan *scan, const struct jsonc_member *member, const struct object *root,
                  struct buf *out)
{
    struct object section = { .name = member->name };
    CLEANUP_BUF struct buf text = BUF_INIT(out->max);

    if (!root->found) {
        (void)buf_printf(&text, "\"%s\": {\n    \"%s\": %s\n  }", member->section, member->name,
                         member->value);
        insert(out, scan, root, "", text.data);
        return 0;
    }
    scan->at = root->value;
    if (peek(scan) != '{') {
        (void)broken(scan, member->section);
        return err_prefix(scan->err, "an object is expected at");
    }
    if (skip_items(scan, 1, &section) < 0) {
        return -1;
    }
    if (section.found) {
        add(out, scan, 0, section.value);
        (void)buf_append_text(out, member->value);
        add(out, scan, section.value_end, scan->size);
        return 0;
    }
    (void)buf_printf(&text, "\"%s\": %s", member->name, member->value);
    insert(out, scan, &section, "  ", text.data);
    return 0;
}

int jsonc_set(const char *text, size_t size, const struct jsonc_member *member, struct buf *out,
              struct err *err)
{
    struct scan scan = { .text = text, .size = size, .err = err };
    struct object root = { .name = member->section };

    if (follows(&scan, BOM)) {
        scan.at += strlen(BOM);
    }
    if (memchr(text, '\0', size) != NULL) {
        return broken(&scan, "the file holds a NUL byte");
    }
    if (skip_blank(&scan) < 0) {
        return -1;
    }
    if (scan.at == size) {
        (void)buf_append(out, text, size);
        (void)buf_append_text(out, size > 0 && text[size - 1] != '\n' ? "\n" : "");
        (void)buf_printf(out, "{\n  \"%s\": {\n    \"%s\": %s\n  }\n}\n", member->section,
                         member->name, member->value);
        return 0;
    }
    if (peek(&scan) != '{') {
        return broken(&scan, "an object is expected here");
    }
    if (skip_items(&scan, 0, &root) < 0 || skip_blank(&scan) < 0) {
        return -1;
    }
    if (scan.at != size) {
        return broken(&scan, "nothing is expected behind the object");
    }
    return change(&scan, member, &root, out);
}
