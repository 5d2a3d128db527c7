/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the command line of tokens.
 * Owns: one connection to the user's own server.
 * Threads: one.
 * May include: server, api/token_text.h, lib/base.
 */
#include "server/token_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/token_text.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/id.h"
#include "lib/base/text.h"
#include "server/config.h"
#include "server/connect.h"

#define EXIT_USAGE 2
#define REPLY_MAX ((size_t)4 << 20)
#define REQUEST_MAX ((size_t)8192)
#define OK_FROM 200
#define OK_BELOW 300

struct command {
    const char *action; /* "new", "list", "revoke" */
    const char *id;     /* to revoke */
    struct token_text_wish wish;
    const char *socket;
    struct strv serve; /* options for a server that is started */
};

static int usage(struct err *err, const char *what)
{
    (void)err_set(err, ERR_BAD_VALUE, 0, "%s", what);
    return err_remedy(err, "usage: kernd token new --scope run|full [--name TEXT] [--expires 30d] "
                           "| list | revoke ID   [--socket PATH | options of serve]");
}

/* "90", "90s", "15m", "12h", "30d". */
static int parse_lifetime(const char *text, double *ret_seconds, struct err *err)
{
    static const struct {
        char letter;
        double seconds;
    } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
    char digits[32];
    double number = 0;
    double unit = 1;

    (void)snprintf(digits, sizeof(digits), "%s", text);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && *digits != '\0'; i++) {
        char *last = &digits[strlen(digits) - 1];

        if (*last == units[i].letter) {
            unit = units[i].seconds;
            *last = '\0';
            break;
        }
    }
    if (text_parse_double(digits, &number) < 0 || number * unit < 1) {
        return usage(err, "--expires wants a time like 12h or 30d");
    }
    *ret_seconds = number * unit;
    return 0;
}

/* One option of ours; others are for a server that is started. */
static int take_option(struct command *command, const char *name, const char *value,
                       struct err *err)
{
    if (text_equal(name, "--scope")) {
        command->wish.scope = value;
        return 0;
    }
    if (text_equal(name, "--name")) {
        command->wish.name = value;
        return 0;
    }
    if (text_equal(name, "--expires")) {
        return parse_lifetime(value, &command->wish.lifetime_s, err);
    }
    if (text_equal(name, "--socket")) {
        command->socket = value;
        return 0;
    }
    strv_add_all(&command->serve, name, value, NULL);
    return 0;
}

static int parse_options(struct command *command, int count, char *const *arguments,
                         struct err *err)
{
    for (int at = 0; at < count; at++) {
        if (!text_starts_with(arguments[at], "--")) {
            if (command->id != NULL || !text_equal(command->action, "revoke")) {
                return usage(err, "there is an argument too many");
            }
            command->id = arguments[at];
        } else if (strchr(arguments[at], '=') != NULL || at + 1 == count ||
                   config_is_switch(arguments[at] + 2)) {
            strv_add(&command->serve, arguments[at]);
        } else if (take_option(command, arguments[at], arguments[at + 1], err) < 0) {
            return -1;
        } else {
            at++;
        }
    }
    return 0;
}

static int parse(struct command *command, int count, char *const *arguments, struct err *err)
{
    const char *action = count > 0 ? arguments[0] : "";

    command->action = action;
    if (!text_equal(action, "new") && !text_equal(action, "list") &&
        !text_equal(action, "revoke")) {
        return usage(err, "one of new, list and revoke is wanted");
    }
    if (parse_options(command, count - 1, arguments + 1, err) < 0) {
        return -1;
    }
    if (text_equal(action, "revoke") && (command->id == NULL || !id_valid(command->id))) {
        return usage(err, "revoke wants the id of a token, as list shows it");
    }
    if (text_equal(action, "new") && command->wish.scope == NULL) {
        return usage(err, "new wants a scope: run for an agent, full for yourself");
    }
    return 0;
}

/* ---- the exchange ---- */

static int write_request(const struct command *command, const struct connect *way, struct buf *out,
                         struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT(REQUEST_MAX);
    const bool makes = text_equal(command->action, "new");

    if (makes) {
        (void)token_text_request(&body, &command->wish);
        (void)buf_append_text(out, "POST /v1/tokens");
    } else if (text_equal(command->action, "list")) {
        (void)buf_append_text(out, "GET /v1/tokens");
    } else {
        (void)buf_printf(out, "DELETE /v1/tokens/%s", command->id);
    }
    (void)buf_append_text(out, " HTTP/1.0\r\nHost: localhost\r\n");
    if (connect_authorize(way, out, err) < 0) {
        return -1;
    }
    if (makes) {
        (void)buf_printf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                         body.size);
    }
    (void)buf_append_text(out, "\r\n");
    (void)buf_append(out, body.data, body.size);
    return 0;
}

/* HTTP/1.0: the connection ends with the reply, of which *ret_body is the part behind the head. */
static int exchange(const struct buf *request, int fd, struct buf *reply, int *ret_status,
                    const char **ret_body)
{
    uint64_t status = 0;
    char digits[4] = "";
    const char *end;

    if (fd_write_full(fd, request->data, request->size) < 0 ||
        fd_read_to_end(fd, reply, NULL) < 0 || reply->size < sizeof("HTTP/1.1 200")) {
        return -1;
    }
    memcpy(digits, reply->data + strlen("HTTP/1.1 "), sizeof(digits) - 1);
    end = strstr(reply->data, "\r\n\r\n");
    if (end == NULL || text_parse_u64(digits, &status) < 0) {
        return -1;
    }
    *ret_status = (int)status;
    *ret_body = end + 4;
    return 0;
}

static int show(const struct command *command, const char *body, size_t size)
{
    CLEANUP_BUF struct buf out = BUF_INIT(REPLY_MAX);
    CLEANUP_BUF struct buf about = BUF_INIT(REPLY_MAX);
    int result = 0;

    if (text_equal(command->action, "new")) {
        result = token_text_made(body, size, &out, &about);
    } else if (text_equal(command->action, "list")) {
        result = token_text_list(body, size, &out);
    }
    if (about.size > 0) {
        (void)fprintf(stderr, "kernd token: %s", about.data);
    }
    if (out.size > 0 && fwrite(out.data, 1, out.size, stdout) != out.size) {
        result = -1;
    }
    return fflush(stdout) == 0 ? result : -1;
}

static int talk(const struct command *command, const struct connect *way, int fd, struct err *err)
{
    CLEANUP_BUF struct buf request = BUF_INIT(REQUEST_MAX);
    CLEANUP_BUF struct buf reply = BUF_INIT(REPLY_MAX);
    CLEANUP_BUF struct buf problem = BUF_INIT(REPLY_MAX);
    const char *body = "";
    int status = 0;

    if (write_request(command, way, &request, err) < 0) {
        return EXIT_FAILURE;
    }
    if (exchange(&request, fd, &reply, &status, &body) == 0 && status >= OK_FROM &&
        status < OK_BELOW && show(command, body, reply.size - (size_t)(body - reply.data)) == 0) {
        return EXIT_SUCCESS;
    }
    token_text_problem(body, strlen(body), &problem);
    (void)fprintf(stderr, "kernd token: %s\n", problem.data);
    return EXIT_FAILURE;
}

static int find(const struct command *command, struct connect *way, struct err *err)
{
    if (command->socket != NULL) {
        connect_at(way, command->socket);
        return 0;
    }
    return connect_find(way, (int)command->serve.count, strv_argv(&command->serve), err);
}

int token_command_main(int count, char *const *arguments)
{
    struct command command = { .action = "" };
    struct connect way = { .socket = NULL };
    struct err err = ERR_INIT;
    int status = EXIT_USAGE;

    if (parse(&command, count, arguments, &err) == 0 && find(&command, &way, &err) == 0) {
        CLEANUP_FD int fd = connect_open(&way, &err);

        status = fd >= 0 ? talk(&command, &way, fd, &err) : EXIT_FAILURE;
    }
    if (err.code != ERR_NONE) {
        (void)fprintf(stderr, "kernd token: %s\n%s\n", err.msg, err.remedy);
    }
    connect_done(&way);
    strv_done(&command.serve);
    return status;
}
