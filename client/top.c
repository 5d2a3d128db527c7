/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: show again and again what runs.
 * Owns: the terminal, meanwhile: its mode, its other screen.
 * Threads: main.
 * May include: client, api/json_view.h, lib/base.
 */
#include "client/top.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/poll.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "client/ask.h"
#include "client/columns.h"
#include "client/style.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"

#define SCREEN_MAX ((size_t)1 << 20)
#define DELAY_MIN_S 0.1
#define OTHER_SCREEN "\033[?1049h\033[?25l"
#define OWN_SCREEN "\033[?25h\033[?1049l"

struct top {
    struct ask *ask;
    bool live; /* on a terminal, until the user ends it */
    double delay_s;
    uint64_t left; /* looks */
    struct termios before;
    bool raw; /* the terminal's mode was changed */
    int signals;
};

/* ---- one look ---- */

static void add_stats(struct buf *out, struct json_object *stats)
{
    (void)buf_printf(
        out,
        "boxes %lld   busy %lld of %lld   queued %lld of %lld   spares %lld   templates %lld   "
        "so far %lld\n\n",
        (long long)json_view_whole(stats, "boxes", 0),
        (long long)json_view_whole(stats, "running", 0),
        (long long)json_view_whole(stats, "runThreads", 0),
        (long long)json_view_whole(stats, "queued", 0),
        (long long)json_view_whole(stats, "queueMax", 0),
        (long long)json_view_whole(stats, "spares", 0),
        (long long)json_view_whole(stats, "templates", 0),
        (long long)json_view_whole(stats, "executionsTotal", 0));
}

static void write_columns(struct columns *columns, struct buf *out)
{
    const unsigned width = isatty(STDOUT_FILENO) == 1 ? style_width(STDOUT_FILENO, NULL) : 0;

    columns_write(columns, out, width, style_on(STDOUT_FILENO, STYLE_BOLD),
                  style_on(STDOUT_FILENO, STYLE_PLAIN));
}

static int add_executions(struct top *top, struct buf *out)
{
    static const char *const states[] = { "running", "queued" };
    struct columns columns = { .width = 5 };
    int result = 0;

    columns_add(&columns, "EXECUTION");
    columns_add(&columns, "KIND");
    columns_add(&columns, "STATE");
    columns_add(&columns, "AGE");
    columns_add(&columns, "SESSION");
    for (size_t i = 0; i < 2 && result == 0; i++) {
        CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
        CLEANUP_JSON_VIEW struct json_object *tree = NULL;

        (void)buf_printf(&target, "/v1/executions?state=%s", states[i]);
        result = ask_call(top->ask, "GET", target.data, NULL, &tree);
        for (size_t k = 0; k < json_view_count(tree, "items"); k++) {
            struct json_object *item = json_view_item(tree, "items", k);

            columns_add(&columns, json_view_text(item, "id"));
            columns_add(&columns, json_view_text(item, "kind"));
            columns_add(&columns, json_view_text(item, "state"));
            columns_add_age(&columns, json_view_text(item, "createdAt"));
            columns_add(&columns, json_view_text(item, "sessionId"));
        }
    }
    write_columns(&columns, out);
    return result;
}

static int add_kernels_of(struct top *top, const char *session, struct columns *columns)
{
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;

    ask_path(&target, "v1", "sessions", session, "kernels", NULL);
    /* It may have ended since it was listed. */
    if (ask_call(top->ask, "GET", target.data, NULL, &tree) < 0) {
        return top->ask->status > 0 ? 0 : -1;
    }
    for (size_t i = 0; i < json_view_count(tree, "items"); i++) {
        struct json_object *item = json_view_item(tree, "items", i);

        columns_add(columns, json_view_text(item, "id"));
        columns_add(columns, json_view_text(item, "language"));
        columns_add(columns, json_view_text(item, "state"));
        columns_add_whole(columns, json_view_whole(item, "cells", 0));
        columns_add_bytes(columns, json_view_whole(item, "memoryBytes", -1));
        columns_add(columns, session);
    }
    return 0;
}

static int add_kernels(struct top *top, struct buf *out)
{
    static const char *const headings[] = { "KERNEL", "LANGUAGE", "STATE",
                                            "CELLS",  "MEMORY",   "SESSION" };
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;
    struct columns columns = { .width = sizeof(headings) / sizeof(headings[0]) };
    int result = ask_call(top->ask, "GET", "/v1/sessions?limit=1000", NULL, &tree);

    for (size_t i = 0; i < columns.width; i++) {
        columns_add(&columns, headings[i]);
    }
    for (size_t i = 0; i < json_view_count(tree, "items") && result == 0; i++) {
        struct json_object *item = json_view_item(tree, "items", i);

        if (json_view_whole(item, "kernels", 0) > 0) {
            result = add_kernels_of(top, json_view_text(item, "id"), &columns);
        }
    }
    if (columns.cells.count > columns.width) {
        (void)buf_append_text(out, "\n");
        write_columns(&columns, out);
    }
    strv_done(&columns.cells);
    return result;
}

/* As many lines as the screen has, each wiped to its end. */
static void draw(const struct buf *text)
{
    CLEANUP_BUF struct buf screen = BUF_INIT(SCREEN_MAX * 2);
    const char *line = text->data;
    unsigned lines = 0;

    (void)style_width(STDOUT_FILENO, &lines);
    (void)buf_append_text(&screen, "\033[H");
    while (line != NULL && *line != '\0' && lines > 1) {
        const char *end = strchrnul(line, '\n');

        (void)buf_append(&screen, line, (size_t)(end - line));
        (void)buf_append_text(&screen, "\033[K\r\n");
        line = *end == '\0' ? end : end + 1;
        lines--;
    }
    (void)buf_append_text(&screen, "\033[J");
    (void)fd_write_full(STDOUT_FILENO, screen.data, screen.size);
}

static int look(struct top *top)
{
    CLEANUP_BUF struct buf out = BUF_INIT(SCREEN_MAX);
    CLEANUP_JSON_VIEW struct json_object *stats = NULL;

    if (ask_show(top->ask, "GET", "/v1/stats", NULL, &stats) < 0) {
        return -1;
    }
    if (stats == NULL) { /* printed */
        return 0;
    }
    add_stats(&out, stats);
    if (add_executions(top, &out) < 0 || add_kernels(top, &out) < 0) {
        return -1;
    }
    if (top->live) {
        draw(&out);
        return 0;
    }
    return ask_print(top->ask, out.data, out.size);
}

/* ---- the terminal ---- */

static void take_terminal(struct top *top)
{
    struct termios mode;
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    top->signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (tcgetattr(STDIN_FILENO, &top->before) == 0) {
        mode = top->before;
        mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        top->raw = tcsetattr(STDIN_FILENO, TCSANOW, &mode) == 0;
    }
    (void)fd_write_full(STDOUT_FILENO, OTHER_SCREEN, strlen(OTHER_SCREEN));
}

static void give_terminal_back(struct top *top)
{
    (void)fd_write_full(STDOUT_FILENO, OWN_SCREEN, strlen(OWN_SCREEN));
    if (top->raw) {
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &top->before);
    }
    fd_close(top->signals);
}

/* True: the user wants to go on. */
static bool wait_for_next(const struct top *top)
{
    struct pollfd polls[] = { { .fd = top->raw ? STDIN_FILENO : -1, .events = POLLIN },
                              { .fd = top->signals, .events = POLLIN } };
    const int64_t next = clock_deadline_after_s(top->delay_s);
    char key = '\0';

    while (poll(polls, 2, clock_poll_ms(next, -1)) > 0) {
        if (polls[1].revents != 0 || read(STDIN_FILENO, &key, 1) <= 0 || key == 'q') {
            return false;
        }
    }
    return true;
}

static int repeat(struct top *top)
{
    int result = look(top);

    while (result == 0 && --top->left > 0 && wait_for_next(top)) {
        result = look(top);
    }
    return result;
}

static int read_options(struct top *top)
{
    const char *delay = flags_value(top->ask->options, "delay");
    const char *count = flags_value(top->ask->options, "count");

    if (delay != NULL &&
        (text_parse_double(delay, &top->delay_s) < 0 || top->delay_s < DELAY_MIN_S)) {
        return ask_fail(top->ask, "give seconds, at least 0.1", "--delay %.40s", delay);
    }
    if (count != NULL && (text_parse_u64(count, &top->left) < 0 || top->left == 0)) {
        return ask_fail(top->ask, "give a number from 1 on", "--count %.40s", count);
    }
    return 0;
}

int top_run(const struct flags *options)
{
    struct ask ask;
    struct top top = { .ask = &ask, .delay_s = 1, .signals = -1 };
    int result = ask_begin(&ask, options);

    top.live = !ask.json && isatty(STDOUT_FILENO) == 1;
    top.left = top.live ? UINT64_MAX : 1;
    if (result == 0) {
        result = read_options(&top);
    }
    if (result == 0) {
        if (top.live) {
            take_terminal(&top);
        }
        result = repeat(&top);
        if (top.live) {
            give_terminal_back(&top);
        }
    }
    return ask_end(&ask, result);
}
