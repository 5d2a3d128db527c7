/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: run a program or code in a box.
 * Owns: nothing.
 * Threads: main.
 * May include: client, api/json_out.h, lib/base.
 */
#include "client/run_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ask.h"
#include "client/compose.h"
#include "client/input.h"
#include "client/show.h"
#include "client/watch.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/id.h"
#include "lib/base/text.h"

#define CODE_MAX ((size_t)16 << 20)

/* A call while it is put together. */
struct program {
    const struct flags *options;
    struct ask ask;
    const char *kind; /* the last part of its path */
    char *code;       /* NULL: a command */
    const char *language;
    bool reads_input; /* standard input is the program's */
    struct buf input; /* the start of it */
    bool interactive; /* it may go on */
    char id[ID_SIZE];
    const char *execution; /* its id */
};

/* ---- the body ---- */

static void write_what(struct json_out *json, const struct program *program)
{
    if (program->code != NULL) {
        compose_text(json, "code", program->code);
        compose_text(json, "language", program->language);
        return;
    }
    json_out_key(json, "command");
    json_out_open(json, '[');
    for (size_t i = 0; i < program->options->operands.count; i++) {
        json_out_string(json, program->options->operands.items[i]);
    }
    json_out_close(json, ']');
}

static void write_how(struct json_out *json, const struct program *program)
{
    const bool detach = flags_has(program->options, "detach");

    compose_text(json, "id", program->execution);
    if (!program->ask.json) {
        compose_text(json, "stdoutEncoding", "base64");
    }
    json_out_key(json, detach ? "detach" : "trackFiles");
    json_out_bool(json, detach || program->ask.json);
    if (!detach) {
        compose_text(json, "onDisconnect", "cancel");
    }
    if (program->interactive) {
        json_out_key(json, "interactive");
        json_out_bool(json, true);
    } else if (program->input.size > 0) {
        json_out_key(json, "stdin");
        compose_bytes(json, program->input.data, program->input.size);
    }
}

static int write_body(struct program *program, struct buf *body)
{
    struct json_out json;

    json_out_init(&json, body);
    json_out_open(&json, '{');
    write_what(&json, program);
    write_how(&json, program);
    if (compose_limits(&json, program->options, &program->ask.err) < 0 ||
        compose_call(&json, program->options, &program->ask.err) < 0) {
        return -1;
    }
    json_out_close(&json, '}');
    return json_out_failed(&json) ? ask_fail(&program->ask, "copy files: kernd cp --help",
                                             "the files are too much for one request")
                                  : 0;
}

/* ---- the call ---- */

/* Every argument is text to the server: JSON can't carry other bytes. */
static int check_text(struct program *program)
{
    for (size_t i = 0; i < program->options->operands.count; i++) {
        const char *text = program->options->operands.items[i];

        if (!text_utf8_valid(text, strlen(text))) {
            return ask_fail(&program->ask, "pass such bytes in a file or on standard input",
                            "an argument is not UTF-8");
        }
    }
    if (program->code != NULL && !text_utf8_valid(program->code, strlen(program->code))) {
        return ask_fail(&program->ask, "save it as UTF-8", "the code is not UTF-8");
    }
    return 0;
}

static void take_input(struct program *program)
{
    const struct flags *options = program->options;
    const bool wanted = flags_has(options, "interactive") || isatty(STDIN_FILENO) != 1;

    if (program->reads_input && wanted && !flags_has(options, "no-stdin") &&
        !flags_has(options, "detach")) {
        program->interactive = !input_read_short(&program->input);
    }
}

static int detach(struct program *program, const char *target, const struct buf *body)
{
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;

    if (ask_show(&program->ask, "POST", target, body, &tree) < 0) {
        return -1;
    }
    if (tree != NULL) {
        (void)ask_print(&program->ask, program->execution, strlen(program->execution));
        (void)ask_print(&program->ask, "\n", 1);
    }
    return 0;
}

static int call(struct program *program)
{
    CLEANUP_BUF struct buf body = BUF_INIT(COMPOSE_MAX);
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    const char *session = flags_value(program->options, "session");
    struct show show = { .ask = NULL };
    struct watch watch = { .ask = &program->ask,
                           .body = &body,
                           .execution = program->execution,
                           .show = program->ask.json ? NULL : &show,
                           .input = program->interactive ? &program->input : NULL };
    int result;

    if (session == NULL) {
        ask_path(&target, "v1", program->kind, NULL);
    } else {
        ask_path(&target, "v1", "sessions", session, program->kind, NULL);
    }
    if (write_body(program, &body) < 0) {
        return -1;
    }
    if (flags_has(program->options, "detach")) {
        return detach(program, target.data, &body);
    }
    watch.target = target.data;
    show_begin(&show, &program->ask);
    result = watch_run(&watch);
    show_done(&show);
    return result;
}

static int start(struct program *program)
{
    const char *id = flags_value(program->options, "id");

    program->execution = id != NULL ? id : id_make("exe", program->id);
    program->input = BUF_INIT(INPUT_SHORT_MAX);
    if (check_text(program) < 0) {
        return -1;
    }
    take_input(program);
    return call(program);
}

static int finish(struct program *program, int result)
{
    free(program->code);
    buf_done(&program->input);
    return ask_end(&program->ask, result);
}

int run_command_run(const struct flags *options)
{
    struct program program = { .options = options, .kind = "run", .reads_input = true };
    int result = ask_begin(&program.ask, options);

    if (result == 0) {
        result = start(&program);
    }
    return finish(&program, result);
}

/* ---- code ---- */

static const char *language_of(const char *path)
{
    static const char *const endings[][2] = { { ".sh", "bash" },  { ".bash", "bash" },
                                              { ".js", "node" },  { ".mjs", "node" },
                                              { ".cjs", "node" }, { ".py", "python" } };

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (text_ends_with(path, endings[i][0])) {
            return endings[i][1];
        }
    }
    return "python";
}

/* Of a file, or of standard input, which is then no program's. */
static int read_code(struct program *program)
{
    const char *path = flags_operand(program->options, 0);
    const bool from_input = path[0] == '\0' || text_equal(path, "-");
    CLEANUP_BUF struct buf code = BUF_INIT(CODE_MAX);
    CLEANUP_FD int fd = -1;

    if (from_input && path[0] == '\0' && isatty(STDIN_FILENO) == 1) {
        return ask_fail(&program->ask, "name a file, use -c CODE, or try kernd repl",
                        "there is no code");
    }
    if (!from_input) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            return ask_fail(&program->ask, "", "%.200s: %s", path, err_errno_text(errno));
        }
    }
    if (fd_read_to_end(from_input ? STDIN_FILENO : fd, &code, &program->ask.err) < 0) {
        return -1;
    }
    if (code.size > 0 && memchr(code.data, '\0', code.size) != NULL) {
        return ask_fail(&program->ask, "", "%.200s is no text", path);
    }
    program->code = buf_take(&code, NULL);
    program->reads_input = !from_input;
    program->language = language_of(path);
    return 0;
}

static int take_code(struct program *program)
{
    const char *code = flags_value(program->options, "code");
    const char *language = flags_value(program->options, "language");

    if (code != NULL) {
        program->code = alloc_text(code);
        program->language = "python";
    } else if (read_code(program) < 0) {
        return -1;
    }
    program->language = language == NULL ? program->language : language;
    return 0;
}

int run_command_code(const struct flags *options)
{
    struct program program = { .options = options, .kind = "runCode", .reads_input = true };
    int result = ask_begin(&program.ask, options);

    if (result == 0 && flags_has(options, "code") && options->operands.count > 0) {
        result = ask_fail(&program.ask, "give one of them", "both -c and a file");
    }
    if (result == 0) {
        result = take_code(&program);
    }
    if (result == 0) {
        result = start(&program);
    }
    return finish(&program, result);
}
