/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: ask the server about itself, or anything.
 * Owns: nothing.
 * Threads: main.
 * May include: client, server/cli.h, api/json_out.h, lib/base.
 */
#include "client/server_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/json_out.h"
#include "client/ask.h"
#include "client/compose.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "server/cli.h"

/* ---- version ---- */

/* What a server that runs says; none is started for it. */
static int print_versions(struct ask *ask)
{
    CLEANUP_BUF struct buf server = BUF_INIT(ASK_BODY_MAX);
    CLEANUP_BUF struct buf out = BUF_INIT(ASK_BODY_MAX);
    const struct remote_request request = { .method = "GET", .target = "/v1/version" };
    struct json_out json;
    int fd = ask->remote.host == NULL ? connect_try(&ask->remote.way) : -1;

    if (fd >= 0 || ask->remote.host != NULL) {
        fd_clear(&fd);
        if (ask_text(ask, &request, &server) < 0) {
            return -1;
        }
    }
    json_out_init(&json, &out);
    json_out_open(&json, '{');
    compose_text(&json, "version", KERND_VERSION);
    json_out_key(&json, "server");
    if (server.size > 0) {
        json_out_raw(&json, server.data, server.size);
    } else {
        json_out_null(&json);
    }
    json_out_close(&json, '}');
    (void)buf_append_text(&out, "\n");
    return ask_print(ask, out.data, out.size);
}

int server_command_version(const struct flags *options)
{
    struct ask ask;
    int result;

    if (flags_has(options, "syscalls")) {
        return cli_syscalls();
    }
    if (!flags_has(options, "json")) {
        (void)printf("kernd %s\n", KERND_VERSION);
        return EXIT_SUCCESS;
    }
    result = ask_begin(&ask, options);
    return ask_end(&ask, result < 0 ? -1 : print_versions(&ask));
}

/* ---- api ---- */

/* "JSON", "@FILE" or "-" */
static int read_data(struct ask *ask, const char *data, struct buf *body)
{
    CLEANUP_FD int opened = -1;
    int file = STDIN_FILENO;

    if (data[0] != '@' && !text_equal(data, "-")) {
        return buf_append_text(body, data);
    }
    if (data[0] == '@') {
        opened = open(data + 1, O_RDONLY | O_CLOEXEC);
        file = opened;
    }
    if (file < 0) {
        return ask_fail(ask, "", "%.200s: %s", data + 1, err_errno_text(errno));
    }
    return fd_read_to_end(file, body, &ask->err);
}

static int print_answer(struct ask *ask, const struct remote_request *request)
{
    CLEANUP_BUF struct buf bytes = BUF_INIT(ASK_BODY_MAX);
    struct answer answer;
    int more = 1;
    int result = ask_open(ask, request, &answer);

    while (result == 0 && more == 1) {
        more = answer_take(&answer, &bytes, &ask->err);
        result = more < 0 ? -1 : ask_print(ask, bytes.data, bytes.size);
        buf_reset(&bytes);
    }
    answer_close(&answer);
    return result;
}

static int send_any(struct ask *ask)
{
    const struct flags *options = ask->options;
    const char *data = flags_value(options, "data");
    const char *type = flags_value(options, "type");
    CLEANUP_BUF struct buf body = BUF_INIT(COMPOSE_MAX);
    struct remote_request request = { .method = flags_operand(options, 0),
                                      .target = flags_operand(options, 1),
                                      .accept = flags_value(options, "accept") };

    if (request.target[0] != '/' || strpbrk(request.target, " \t\r\n") != NULL ||
        request.method[strspn(request.method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] != '\0') {
        return ask_fail(ask, "for example: kernd api GET /v1/stats", "no method or no path");
    }
    if (data != NULL) {
        if (read_data(ask, data, &body) < 0) {
            return -1;
        }
        request.type = type == NULL ? "application/json" : type;
        request.body = body.data == NULL ? "" : body.data;
        request.size = body.size;
    }
    return print_answer(ask, &request);
}

int server_command_api(const struct flags *options)
{
    struct ask ask;
    int result = ask_begin(&ask, options);

    return ask_end(&ask, result < 0 ? -1 : send_any(&ask));
}
