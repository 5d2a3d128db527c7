/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: show events.
 * Owns: standard output and error, while it shows.
 * Threads: main.
 * May include: client, api/json_view.h, lib/base.
 */
#include "client/show.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/compose.h"
#include "client/style.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"

#define LINE_MAX_SIZE ((size_t)256 << 20)
#define PIECE_MAX ((size_t)256 << 20)

static const char *const stream_names[] = { "stdout", "stderr" };

void show_begin(struct show *show, struct ask *ask)
{
    *show = (struct show){ .ask = ask,
                           .picture = { .directory = flags_value(ask->options, "images") },
                           .lines = BUF_INIT(LINE_MAX_SIZE),
                           .status = COMMAND_FAILED };
}

void show_done(struct show *show)
{
    buf_done(&show->lines);
    picture_done(&show->picture);
}

static int write_on(struct show *show, size_t stream, const char *data, size_t size)
{
    if (show->only[1 - stream]) {
        return 0;
    }
    if (size > 0 && fd_write_full(stream == 0 ? STDOUT_FILENO : STDERR_FILENO, data, size) < 0) {
        return ask_fail(show->ask, "", "standard %s: %s", stream == 0 ? "output" : "error",
                        err_errno_text(errno));
    }
    return 0;
}

static void say(const char *what, const char *more)
{
    (void)fprintf(stderr, "%skernd:%s %s%s\n", style_on(STDERR_FILENO, STYLE_BAD),
                  style_on(STDERR_FILENO, STYLE_PLAIN), what, more);
}

/* ---- each kind of event ---- */

static int show_output(struct show *show, struct json_object *event, size_t stream)
{
    CLEANUP_BUF struct buf bytes = BUF_INIT(PIECE_MAX);
    size_t size = 0;
    const char *data = json_view_bytes(event, "data", &size);

    if (data == NULL) {
        return 0;
    }
    if (json_view_text(event, "encoding") != NULL) {
        if (text_base64_decode(&bytes, data, size) < 0) {
            return ask_fail(show->ask, "", "the server's answer has bad base64");
        }
        data = bytes.data;
        size = bytes.size;
    }
    show->shown[stream] = (uint64_t)json_view_whole(event, "offset", 0) + size;
    return write_on(show, stream, data, size);
}

/* An image, else its text. */
static int show_result(struct show *show, struct json_object *event)
{
    struct json_object *data = json_view_at(event, "data");
    struct json_object *member = NULL;
    const char *type;
    const char *text;
    size_t size = 0;

    for (size_t i = 0; (type = json_view_member(data, i, &member)) != NULL; i++) {
        const char *bytes = json_view_bytes(member, "", &size);

        if (text_starts_with(type, "image/") && bytes != NULL) {
            return picture_show(&show->picture, type, bytes, &show->ask->err);
        }
    }
    for (size_t i = 0; (type = json_view_member(data, i, &member)) != NULL; i++) {
        text = json_view_bytes(member, "", &size);
        if (text_equal(type, "text/plain") && text != NULL) {
            return write_on(show, 0, text, size) < 0 ? -1 : write_on(show, 0, "\n", 1);
        }
    }
    return 0;
}

static void note_truncated(struct show *show, struct json_object *event)
{
    const char *name = json_view_text(event, "stream");

    for (size_t i = 0; i < 2; i++) {
        if (name != NULL && text_equal(name, stream_names[i])) {
            bool *which = json_view_true(event, "logOnly") ? show->log_full : show->truncated;

            which[i] = true;
        }
    }
}

/* Where a fetched file is to go: what the option says, else the path's last component. */
static char *local_of(const struct flags *options, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *text;
    char *found = NULL;
    size_t at = 0;

    while (found == NULL && (text = flags_next(options, "fetch", &at)) != NULL) {
        CLEANUP_FREE char *left = NULL;
        CLEANUP_FREE char *right = NULL;

        compose_split(text, &left, &right);
        if (text_equal(left, path)) {
            found = CLEANUP_TAKE(right);
        }
    }
    return found != NULL ? found : alloc_text(slash == NULL ? path : slash + 1);
}

static int save_fetched(struct show *show, struct json_object *fetched)
{
    struct json_object *member = NULL;
    const char *path;
    int result = 0;

    for (size_t i = 0; (path = json_view_member(fetched, i, &member)) != NULL; i++) {
        CLEANUP_BUF struct buf bytes = BUF_INIT(PIECE_MAX);
        CLEANUP_FREE char *local = local_of(show->ask->options, path);
        const char *text = json_view_text(member, "base64");

        if (text == NULL) {
            say("not fetched: ", path);
            result = -1;
        } else if (text_base64_decode(&bytes, text, strlen(text)) < 0 ||
                   fd_write_file(local, bytes.data, bytes.size, 0644) < 0) {
            say("can't be written: ", local);
            result = -1;
        }
    }
    return result;
}

/* Why the sandbox acted, unless that is what the user asked for and got. */
static void tell_fault(const struct show *show, struct json_object *event)
{
    const char *message = json_view_text(event, "fault.message");
    const char *type = json_view_text(event, "fault.type");
    const bool lost =
        json_view_at(event, "stateKept") != NULL && !json_view_true(event, "stateKept");

    if (message != NULL && (lost || !show->interrupted || !text_equal(type, "cancelled"))) {
        say(message, "");
    }
}

static void show_end(struct show *show, struct json_object *event)
{
    const char *late[] = { json_view_text(event, "background.stdout"),
                           json_view_text(event, "background.stderr") };

    show->ended = true;
    for (size_t i = 0; i < 2; i++) {
        (void)write_on(show, i, late[i], late[i] == NULL ? 0 : strlen(late[i]));
    }
    show->status = (int)json_view_whole(event, "exitCode", COMMAND_FAILED);
    tell_fault(show, event);
    if (flags_has(show->ask->options, "fetch") &&
        save_fetched(show, json_view_at(event, "fetched")) < 0 && show->status == 0) {
        show->status = COMMAND_FAILED;
    }
}

static int show_event(struct show *show, struct json_object *event)
{
    const char *type = json_view_text(event, "type");

    if (type == NULL) {
        return 0;
    }
    if (text_equal(type, "stdout") || text_equal(type, "stderr")) {
        return show_output(show, event, text_equal(type, "stderr"));
    }
    if (text_equal(type, "result")) {
        return show->only[0] || show->only[1] ? 0 : show_result(show, event);
    }
    if (text_equal(type, "truncated")) {
        note_truncated(show, event);
    } else if (text_equal(type, "exit")) {
        show_end(show, event);
    } else if (text_equal(type, "error")) {
        const char *remedy = json_view_text(event, "remediation");
        const char *detail = json_view_text(event, "detail");

        show->ended = true;
        return ask_fail(show->ask, remedy == NULL ? "" : remedy, "%s",
                        detail == NULL ? "it could not be run" : detail);
    }
    return 0;
}

int show_take(struct show *show, struct buf *bytes)
{
    const char *newline;
    size_t done = 0;
    int result = 0;

    if (buf_append(&show->lines, bytes->data, bytes->size) < 0) {
        return ask_fail(show->ask, "", "an event of the server is too long");
    }
    buf_reset(bytes);
    while (result == 0 && show->lines.size > done &&
           (newline = memchr(show->lines.data + done, '\n', show->lines.size - done)) != NULL) {
        const char *line = show->lines.data + done;
        CLEANUP_JSON_VIEW struct json_object *event =
            json_view_parse(line, (size_t)(newline - line));

        done = (size_t)(newline - show->lines.data) + 1;
        result = show_event(show, event);
    }
    buf_consume(&show->lines, done);
    return result;
}

/* ---- after the end ---- */

static int show_stream_rest(struct show *show, const char *execution, size_t stream)
{
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    CLEANUP_BUF struct buf bytes = BUF_INIT(PIECE_MAX);
    struct remote_request request = { .method = "GET",
                                      .accept = "application/octet-stream",
                                      .from = show->shown[stream] };
    struct answer answer;
    int result;
    int more = 1;

    ask_path(&target, "v1", "executions", execution, stream_names[stream], NULL);
    request.target = target.data;
    result = ask_open(show->ask, &request, &answer);
    while (result == 0 && more == 1) {
        more = answer_take(&answer, &bytes, &show->ask->err);
        result = more < 0 ? -1 : write_on(show, stream, bytes.data, bytes.size);
        buf_reset(&bytes);
    }
    answer_close(&answer);
    /* Nothing behind what was shown. */
    return result < 0 && show->ask->status == 416 ? 0 : result;
}

int show_rest(struct show *show, const char *execution)
{
    int result = 0;

    if (!show->ended && !show->partial) {
        return ask_fail(show->ask, "", "the server ended before the program did");
    }
    for (size_t i = 0; i < 2 && result == 0; i++) {
        if (show->log_full[i] && !show->only[1 - i]) {
            result = show_stream_rest(show, execution, i);
        }
        if (show->truncated[i]) {
            say(stream_names[i], " was cut: more than --max-output bytes");
        }
    }
    return result;
}
