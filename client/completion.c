/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: ask a kernel for names.
 * Owns: nothing.
 * Threads: main.
 * May include: client, api/json_out.h, lib/base.
 */
#include "client/completion.h"

#include <stdlib.h>
#include <string.h>

#include "client/compose.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"

#define CODE_MAX ((size_t)64 << 10)
#define LIMIT "2"
#define FOUND_MAX 500

/* Nothing in it means anything to an interpreter but names, points and, for bash, paths. */
static const char name_characters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
static const char path_characters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+~";

static const char *word_of(const char *language, const char *line)
{
    const char *taken = text_equal(language, "bash") ? path_characters : name_characters;
    const char *word = line + strlen(line);

    while (word > line && strchr(taken, word[-1]) != NULL) {
        word--;
    }
    return word;
}

/* Prints a name a line, and leaves no variable behind. */
static void write_code(struct buf *code, const char *language, const char *word)
{
    if (text_equal(language, "python")) {
        (void)buf_printf(code,
                         "(lambda c, n: print(*sorted({m for m in iter(lambda: c.complete('%s', "
                         "next(n)), None)}), sep='\\n'))(__import__('rlcompleter')."
                         "Completer(globals()), __import__('itertools').count())",
                         word);
    } else if (text_equal(language, "bash")) {
        (void)buf_printf(code, "compgen -c -f -v -- '%s' | sort -u", word);
    } else {
        const char *point = strrchr(word, '.');

        (void)buf_printf(code,
                         "{ const found = new Set(); for (let o = %.*s; o != null; o = "
                         "Object.getPrototypeOf(o)) Object.getOwnPropertyNames(o).forEach((n) => "
                         "found.add(n)); for (const n of [...found].sort()) if "
                         "(n.startsWith('%s')) console.log('%.*s' + n); }",
                         point == NULL ? (int)strlen("globalThis") : (int)(point - word),
                         point == NULL ? "globalThis" : word, point == NULL ? word : point + 1,
                         point == NULL ? 0 : (int)(point - word) + 1, word);
    }
}

static void write_body(struct buf *body, const char *code)
{
    struct json_out json;

    json_out_init(&json, body);
    json_out_open(&json, '{');
    compose_text(&json, "code", code);
    json_out_key(&json, "timeoutS");
    json_out_raw(&json, LIMIT, strlen(LIMIT));
    json_out_close(&json, '}');
}

void completion_find(struct ask *ask, const char *cells, const char *language, const char *line,
                     struct strv *out)
{
    const char *word = word_of(language, line);
    CLEANUP_BUF struct buf code = BUF_INIT(CODE_MAX);
    CLEANUP_BUF struct buf body = BUF_INIT(CODE_MAX);
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;
    const char *text;

    if (word[0] == '\0') {
        return;
    }
    write_code(&code, language, word);
    write_body(&body, code.data);
    if (ask_call(ask, "POST", cells, &body, &tree) < 0 || !json_view_true(tree, "success")) {
        return;
    }
    text = json_view_text(tree, "stdout");
    while (text != NULL && *text != '\0' && out->count < FOUND_MAX) {
        const size_t length = strcspn(text, "\n");
        CLEANUP_FREE char *name = alloc_copy(text, length);

        if (text_starts_with(name, word)) {
            strv_add(out, name);
        }
        text += length + (text[length] == '\n' ? 1 : 0);
    }
}
