/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: guess where a statement ends.
 * Owns: nothing.
 * Threads: any, pure.
 * May include: lib/base.
 */
#include "client/unfinished.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/text.h"

struct scan {
    bool python;
    bool bash;
    bool node;
    const char *at;
    int depth;          /* open brackets; of bash: open compound commands, too */
    bool open_quote;    /* the text ends in a quotation */
    bool block;         /* a line of python opened one */
    bool command;       /* bash: a command may begin here */
    char last;          /* the last character of this line that is no blank and no comment */
    bool escaped_break; /* the last line ends with a backslash */
};

/* Behind the end of a quotation that begins here. */
static void skip_quote(struct scan *scan)
{
    const char quote = *scan->at;
    const bool triple = scan->python && scan->at[1] == quote && scan->at[2] == quote;
    const bool over_lines = triple || scan->bash || quote == '`';
    const size_t width = triple ? 3 : 1;
    const char closing[] = { quote, quote, quote, '\0' };

    scan->at += width;
    while (*scan->at != '\0' && strncmp(scan->at, closing, width) != 0) {
        if (*scan->at == '\n' && !over_lines) {
            return; /* an error, which is the kernel's to tell */
        }
        if (*scan->at == '\\' && scan->at[1] != '\0' && !(scan->bash && quote == '\'')) {
            scan->at++;
        }
        scan->at++;
    }
    if (*scan->at == '\0') {
        scan->open_quote = over_lines;
        return;
    }
    scan->at += width;
}

/* True: a comment stood here, and scan is behind it. */
static bool skip_comment(struct scan *scan)
{
    const bool word_begins = scan->last == '\0' || isspace((unsigned char)scan->at[-1]) != 0;

    if (scan->node && strncmp(scan->at, "/*", 2) == 0) {
        const char *end = strstr(scan->at + 2, "*/");

        scan->open_quote = end == NULL;
        scan->at = end == NULL ? scan->at + strlen(scan->at) : end + 2;
        return true;
    }
    if ((scan->python && *scan->at == '#') || (scan->bash && *scan->at == '#' && word_begins) ||
        (scan->node && strncmp(scan->at, "//", 2) == 0)) {
        scan->at = strchrnul(scan->at, '\n');
        return true;
    }
    return false;
}

/* bash: a word, which may open or close a compound command. */
static void take_word(struct scan *scan)
{
    static const char *const opening[] = { "if", "do", "case", "{", NULL };
    static const char *const closing[] = { "fi", "done", "esac", "}", NULL };
    static const char *const going_on[] = { "then", "else", "elif", "while", "until", "!", NULL };
    /* "#" is a word's own character unless it begins one, and then it is a comment. */
    const size_t length = 1 + strcspn(scan->at + 1, " \t\n;&|()\"'`#\\");
    bool again = false;

    for (size_t i = 0; scan->command && opening[i] != NULL; i++) {
        if (strlen(opening[i]) == length && strncmp(scan->at, opening[i], length) == 0) {
            scan->depth++;
            again = opening[i][0] != 'c';
        }
        if (strlen(closing[i]) == length && strncmp(scan->at, closing[i], length) == 0) {
            scan->depth--;
        }
    }
    for (size_t i = 0; scan->command && going_on[i] != NULL; i++) {
        again =
            again || (strlen(going_on[i]) == length && strncmp(scan->at, going_on[i], length) == 0);
    }
    scan->last = scan->at[length - 1];
    scan->at += length;
    scan->command = again;
}

static void end_line(struct scan *scan)
{
    scan->block = scan->block || (scan->python && scan->depth == 0 && scan->last == ':');
    scan->last = '\0';
    scan->command = true;
    scan->at++;
}

static void take_character(struct scan *scan)
{
    const char c = *scan->at;

    if (strchr("([{", c) != NULL) {
        scan->depth++;
    } else if (strchr(")]}", c) != NULL) {
        scan->depth--;
    }
    scan->command = strchr(";&|()", c) != NULL;
    scan->block =
        scan->block || (scan->python && c == '@' && scan->last == '\0' && scan->depth == 0);
    scan->last = c;
    scan->at++;
}

static void step(struct scan *scan)
{
    const char c = *scan->at;

    if (c == '\\') {
        scan->escaped_break = scan->at[1] == '\0' || (scan->at[1] == '\n' && scan->at[2] == '\0');
        scan->at += scan->at[1] == '\0' ? 1 : 2;
        scan->last = '\\';
    } else if (skip_comment(scan)) {
        return;
    } else if (c == '\'' || c == '"' || (c == '`' && !scan->python)) {
        skip_quote(scan);
        scan->last = c;
        scan->command = false;
    } else if (c == '\n') {
        end_line(scan);
    } else if (isspace((unsigned char)c) != 0) {
        scan->at++;
    } else if (scan->bash && strchr(";&|()", c) == NULL) {
        take_word(scan);
    } else {
        take_character(scan);
    }
}

bool unfinished_code(const char *language, const char *code)
{
    struct scan scan = { .python = text_equal(language, "python"),
                         .bash = text_equal(language, "bash"),
                         .node = text_equal(language, "node"),
                         .at = code,
                         .command = true };
    const char *last_line;

    while (*scan.at != '\0') {
        step(&scan);
    }
    scan.block = scan.block || (scan.python && scan.depth == 0 && scan.last == ':');
    last_line = strrchr(code, '\n');
    last_line = last_line == NULL ? code : last_line + 1;
    return scan.open_quote || scan.depth > 0 || scan.escaped_break ||
           (scan.block && last_line[strspn(last_line, " \t")] != '\0');
}
