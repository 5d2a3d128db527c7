/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read statements, run them as cells, show what they give.
 * Owns: a kernel, and a session if none was named.
 * Threads: main.
 * May include: client, server/places.h, api/json_out.h, lib/base.
 */
#include "client/repl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ask.h"
#include "client/completion.h"
#include "client/compose.h"
#include "client/editor.h"
#include "client/show.h"
#include "client/style.h"
#include "client/unfinished.h"
#include "client/watch.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/id.h"
#include "lib/base/text.h"
#include "server/dirs.h"
#include "server/places.h"

#define STATEMENT_MAX ((size_t)1 << 20)
/* Should this process be killed, the server removes the session it made after that. */
#define FORGOTTEN_AFTER_S "86400"

struct repl {
    struct ask ask;
    const char *language;
    char *session;
    char *kernel;
    bool own_session; /* to be removed at the end */
    bool own_kernel;
    char *path;  /* of the kernel */
    char *cells; /* of its cells */
    bool terminal;
    struct editor *editor;
    struct buf statement;
    unsigned images; /* saved so far */
};

/* ---- opening and closing ---- */

static int make_session(struct repl *repl)
{
    CLEANUP_BUF struct buf body = BUF_INIT(COMPOSE_MAX);
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;
    struct json_out json;

    json_out_init(&json, &body);
    json_out_open(&json, '{');
    json_out_key(&json, "idleTimeoutS");
    json_out_raw(&json, FORGOTTEN_AFTER_S, strlen(FORGOTTEN_AFTER_S));
    if (compose_limits(&json, repl->ask.options, &repl->ask.err) < 0) {
        return -1;
    }
    json_out_close(&json, '}');
    if (ask_call(&repl->ask, "POST", "/v1/sessions", &body, &tree) < 0) {
        return -1;
    }
    repl->session = alloc_text(json_view_text(tree, "id"));
    repl->own_session = true;
    return 0;
}

static void name_kernel(struct repl *repl, const char *kernel)
{
    CLEANUP_BUF struct buf path = BUF_INIT(ASK_TARGET_MAX);

    repl->kernel = alloc_text(kernel);
    ask_path(&path, "v1", "sessions", repl->session, "kernels", kernel, NULL);
    repl->cells = alloc_printf("%s/cells", path.data);
    repl->path = buf_take(&path, NULL);
}

/* True: it is there already. */
static bool find_kernel(struct repl *repl, const char *id)
{
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;
    const char *language;

    name_kernel(repl, id);
    if (ask_call(&repl->ask, "GET", repl->path, NULL, &tree) < 0) {
        return false;
    }
    language = json_view_text(tree, "language");
    for (size_t i = 0; i < 3; i++) {
        static const char *const known[] = { "python", "bash", "node" };

        if (text_equal(language, known[i])) {
            repl->language = known[i];
        }
    }
    return true;
}

static int make_kernel(struct repl *repl, const char *id)
{
    CLEANUP_BUF struct buf body = BUF_INIT(COMPOSE_MAX);
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;
    struct json_out json;

    ask_path(&target, "v1", "sessions", repl->session, "kernels", NULL);
    json_out_init(&json, &body);
    json_out_open(&json, '{');
    compose_text(&json, "id", id);
    compose_text(&json, "language", repl->language);
    if (compose_number(&json, "timeoutS", repl->ask.options, "timeout", &repl->ask.err) < 0) {
        return -1;
    }
    json_out_close(&json, '}');
    if (ask_call(&repl->ask, "POST", target.data, &body, &tree) < 0) {
        return -1;
    }
    if (id == NULL) {
        name_kernel(repl, json_view_text(tree, "id"));
        repl->own_kernel = true;
    }
    if (repl->terminal) {
        (void)printf(
            "%s%s in session %s; :help tells more.%s\n", style_on(STDOUT_FILENO, STYLE_DIM),
            json_view_text(tree, "interpreter") == NULL ? repl->language
                                                        : json_view_text(tree, "interpreter"),
            repl->session, style_on(STDOUT_FILENO, STYLE_PLAIN));
    }
    return 0;
}

static int open_kernel(struct repl *repl)
{
    const char *session = flags_value(repl->ask.options, "session");
    const char *kernel = flags_value(repl->ask.options, "kernel");

    if (kernel != NULL && session == NULL) {
        return ask_fail(&repl->ask, "name it with --session", "a kernel has a session");
    }
    if (session == NULL) {
        if (make_session(repl) < 0) {
            return -1;
        }
    } else {
        repl->session = alloc_text(session);
    }
    return kernel != NULL && find_kernel(repl, kernel) ? 0 : make_kernel(repl, kernel);
}

static void remove_path(struct repl *repl, const char *path)
{
    const struct remote_request request = { .method = "DELETE", .target = path };

    (void)ask_aside(&repl->ask, &request);
}

static void close_kernel(struct repl *repl)
{
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);

    if (repl->own_session) {
        ask_path(&target, "v1", "sessions", repl->session, NULL);
        remove_path(repl, target.data);
    } else if (repl->own_kernel) {
        remove_path(repl, repl->path);
    }
    free(repl->session);
    free(repl->kernel);
    free(repl->path);
    free(repl->cells);
}

/* ---- cells ---- */

/* 0: also when the cell failed; -1: there is no going on. */
static int run_cell(struct repl *repl, const char *code)
{
    CLEANUP_BUF struct buf body = BUF_INIT(COMPOSE_MAX);
    char id[ID_SIZE];
    struct show show;
    struct watch watch = { .ask = &repl->ask,
                           .target = repl->cells,
                           .body = &body,
                           .execution = id_make("exe", id),
                           .kernel = repl->path,
                           .show = &show };
    struct json_out json;
    int result;

    json_out_init(&json, &body);
    json_out_open(&json, '{');
    compose_text(&json, "code", code);
    compose_text(&json, "id", id);
    compose_text(&json, "stdoutEncoding", "base64");
    compose_text(&json, "onDisconnect", "cancel");
    json_out_close(&json, '}');
    show_begin(&show, &repl->ask);
    show.picture.count = repl->images;
    result = watch_run(&watch);
    repl->images = show.picture.count;
    show_done(&show);
    if (result < 0 && repl->ask.status == 0) {
        return -1;
    }
    if (result < 0) {
        ask_tell(&repl->ask);
    }
    return 0;
}

static int restart(struct repl *repl)
{
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;

    (void)buf_printf(&target, "%s/restart", repl->path);
    return ask_call(&repl->ask, "POST", target.data, NULL, &tree);
}

/* ---- statements ---- */

static void print_help(void)
{
    (void)fputs(
        ":help      print this\n"
        ":restart   start the kernel anew, without its variables\n"
        ":quit      end, as Ctrl-D does\n"
        "Tab completes, the arrow keys go through the history. Ctrl-C interrupts what runs, a\n"
        "second one starts the kernel anew.\n",
        stdout);
}

/* 1: the user ends it; 0, or -1 as functions of ask. */
static int take_command(struct repl *repl, const char *line)
{
    if (text_equal(line, ":quit")) {
        return 1;
    }
    if (text_equal(line, ":restart")) {
        return restart(repl);
    }
    if (!text_equal(line, ":help")) {
        (void)printf("There is no %s.\n", line);
    }
    print_help();
    return 0;
}

static int take_line(struct repl *repl, const char *line)
{
    int result = 0;

    if (repl->statement.size == 0 && line[0] == ':') {
        return take_command(repl, line);
    }
    if (repl->statement.size > 0) {
        (void)buf_append_text(&repl->statement, "\n");
    }
    if (buf_append_text(&repl->statement, line) < 0) {
        buf_reset(&repl->statement);
        return ask_fail(&repl->ask, "", "a statement above 1 MiB");
    }
    if (repl->statement.data == NULL || unfinished_code(repl->language, repl->statement.data)) {
        return 0;
    }
    editor_remember(repl->editor, repl->statement.data);
    if (repl->statement.data[strspn(repl->statement.data, " \t\n")] != '\0') {
        result = run_cell(repl, repl->statement.data);
    }
    buf_reset(&repl->statement);
    return result;
}

static const char *prompt_of(const struct repl *repl)
{
    if (repl->statement.size > 0) {
        return "... ";
    }
    return text_equal(repl->language, "python") ? ">>> "
           : text_equal(repl->language, "bash") ? "$ "
                                                : "> ";
}

static int loop(struct repl *repl)
{
    int result = 0;

    while (result == 0) {
        char *line = NULL;
        const enum editor_end end = editor_read(repl->editor, prompt_of(repl), &line);

        if (end == EDITOR_INTERRUPTED) {
            buf_reset(&repl->statement);
        } else if (end == EDITOR_LINE) {
            result = take_line(repl, line);
        } else {
            /* What was begun is run as it is. */
            if (repl->statement.size > 0) {
                result = run_cell(repl, repl->statement.data);
            }
            result = result == 0 ? 1 : result;
        }
        free(line);
    }
    return result < 0 ? -1 : 0;
}

/* ---- all of it ---- */

static void complete(void *context, const char *line, struct strv *out)
{
    struct repl *repl = context;

    completion_find(&repl->ask, repl->cells, repl->language, line, out);
}

/* Beside the server's own state, in the user's. NULL: there is no place for one. */
static char *history_path(const char *language)
{
    const char *state = places_environment("XDG_STATE_HOME");
    const char *home = places_environment("HOME");
    CLEANUP_FREE char *directory = NULL;

    if (state == NULL && home == NULL) {
        return NULL;
    }
    directory = state != NULL ? alloc_printf("%s/kernd", state)
                              : alloc_printf("%s/.local/state/kernd", home);
    if (dirs_make_private(directory, geteuid(), getegid(), NULL) < 0) {
        return NULL;
    }
    return alloc_printf("%s/history.%s", directory, language);
}

int repl_run(const struct flags *options)
{
    const char *language = flags_value(options, "language");
    struct repl repl = { .language = language == NULL ? "python" : language,
                         .statement = BUF_INIT(STATEMENT_MAX),
                         .terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 };
    CLEANUP_FREE char *history = repl.terminal ? history_path(repl.language) : NULL;
    int result = ask_begin(&repl.ask, options);

    if (result == 0) {
        repl.editor = editor_new(history, complete, &repl);
        result = open_kernel(&repl);
    }
    if (result == 0) {
        result = loop(&repl);
    }
    editor_free(repl.editor);
    close_kernel(&repl);
    buf_done(&repl.statement);
    return ask_end(&repl.ask, result);
}
