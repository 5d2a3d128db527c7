/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: whole exchanges with the server, and what is said when one fails.
 * Owns: the connection's place, the failure.
 * Threads: main.
 * May include: client, api (JSON, names), lib/base.
 */
#include "client/ask.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/json_out.h"
#include "client/style.h"
#include "lib/base/fd.h"

#define PROBLEM_MAX ((size_t)1 << 20)

int ask_begin(struct ask *ask, const struct flags *options)
{
    *ask = (struct ask){ .options = options,
                         .json = flags_has(options, "json"),
                         .err = ERR_INIT,
                         .problem = BUF_INIT(PROBLEM_MAX) };
    return remote_open(options, &ask->remote, &ask->err);
}

static void write_problem(struct buf *out, const struct err *err)
{
    struct json_out json;

    json_out_init(&json, out);
    json_out_open(&json, '{');
    json_out_key(&json, "code");
    json_out_string(&json, "client");
    json_out_key(&json, "detail");
    json_out_string(&json, err->msg);
    json_out_key(&json, "remediation");
    json_out_string(&json, err->remedy);
    json_out_close(&json, '}');
}

void ask_tell(struct ask *ask)
{
    if (!ask->json) {
        (void)fprintf(stderr, "%skernd:%s %s%s%s\n", style_on(STDERR_FILENO, STYLE_BAD),
                      style_on(STDERR_FILENO, STYLE_PLAIN), ask->err.msg,
                      ask->err.remedy[0] == '\0' ? "" : "; ", ask->err.remedy);
        return;
    }
    if (ask->problem.size == 0) {
        write_problem(&ask->problem, &ask->err);
    }
    (void)buf_append_text(&ask->problem, "\n");
    (void)fd_write_full(STDOUT_FILENO, ask->problem.data, ask->problem.size);
}

int ask_end(struct ask *ask, int result)
{
    if (result < 0) {
        ask_tell(ask);
        result = COMMAND_FAILED;
    }
    remote_close(&ask->remote);
    buf_done(&ask->problem);
    return result;
}

int ask_fail(struct ask *ask, const char *remedy, const char *format, ...)
{
    char text[sizeof(ask->err.msg)];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    (void)err_set(&ask->err, ERR_IO, 0, "%s", text);
    return err_remedy(&ask->err, "%s", remedy);
}

/* ---- exchanges ---- */

static int take_all(struct ask *ask, struct answer *answer, struct buf *out)
{
    int more;

    do {
        more = answer_take(answer, out, &ask->err);
    } while (more == 1);
    return more;
}

int ask_refused(struct ask *ask, struct answer *answer)
{
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;
    const char *detail;

    buf_reset(&ask->problem);
    if (take_all(ask, answer, &ask->problem) < 0) {
        return -1;
    }
    tree = json_view_parse(ask->problem.data, ask->problem.size);
    detail = json_view_text(tree, "detail");
    if (detail == NULL) {
        buf_reset(&ask->problem);
        return ask_fail(ask, "is this a kernd server?", "the server answered with HTTP status %d",
                        answer->status);
    }
    (void)ask_fail(
        ask, json_view_text(tree, "remediation") == NULL ? "" : json_view_text(tree, "remediation"),
        "%s", detail);
    ask->err.code = ERR_BAD_REQUEST;
    return -1;
}

int ask_open(struct ask *ask, const struct remote_request *request, struct answer *answer)
{
    int fd;

    *answer = (struct answer){ .fd = -1 };
    ask->err = ERR_INIT;
    ask->status = 0;
    fd = remote_dial(&ask->remote, &ask->err);
    if (fd < 0) {
        return -1;
    }
    if (remote_send(&ask->remote, fd, request, &ask->err) < 0) {
        fd_close(fd);
        return -1;
    }
    if (answer_open(answer, fd, &ask->err) < 0) {
        return -1;
    }
    ask->status = answer->status;
    return answer->status >= 400 ? ask_refused(ask, answer) : 0;
}

int ask_text(struct ask *ask, const struct remote_request *request, struct buf *out)
{
    CLEANUP_BUF struct buf unwanted = BUF_INIT(ASK_BODY_MAX);
    struct answer answer;
    int result = ask_open(ask, request, &answer);

    if (result == 0) {
        result = take_all(ask, &answer, out == NULL ? &unwanted : out);
    }
    if (result == 0) {
        result = answer.status;
    }
    answer_close(&answer);
    return result;
}

/* body may be NULL: none. */
static struct remote_request json_request(const char *method, const char *target,
                                          const struct buf *body)
{
    struct remote_request request = { .method = method, .target = target };

    if (body != NULL) {
        request.type = "application/json";
        request.body = body->data;
        request.size = body->size;
    }
    return request;
}

int ask_call(struct ask *ask, const char *method, const char *target, const struct buf *body,
             struct json_object **ret_tree)
{
    CLEANUP_BUF struct buf out = BUF_INIT(ASK_BODY_MAX);
    const struct remote_request request = json_request(method, target, body);

    if (ask_text(ask, &request, &out) < 0) {
        return -1;
    }
    if (ret_tree != NULL) {
        *ret_tree = json_view_parse(out.data, out.size);
        if (*ret_tree == NULL && out.size > 0) {
            return ask_fail(ask, "is this a kernd server?", "the server's answer is not JSON");
        }
    }
    return 0;
}

int ask_aside(const struct ask *ask, const struct remote_request *request)
{
    struct ask aside = { .options = ask->options,
                         .remote = ask->remote,
                         .err = ERR_INIT,
                         .problem = BUF_INIT(PROBLEM_MAX) };

    (void)ask_text(&aside, request, NULL);
    buf_done(&aside.problem);
    return aside.status;
}

int ask_print(struct ask *ask, const char *text, size_t size)
{
    if (size > 0 && fd_write_full(STDOUT_FILENO, text, size) < 0) {
        return ask_fail(ask, "", "standard output: %s", err_errno_text(errno));
    }
    return 0;
}

int ask_show(struct ask *ask, const char *method, const char *target, const struct buf *body,
             struct json_object **ret_tree)
{
    CLEANUP_BUF struct buf out = BUF_INIT(ASK_BODY_MAX);
    const struct remote_request request = json_request(method, target, body);

    *ret_tree = NULL;
    if (!ask->json) {
        return ask_call(ask, method, target, body, ret_tree);
    }
    if (ask_text(ask, &request, &out) < 0) {
        return -1;
    }
    (void)buf_append_text(&out, out.size == 0 ? "{}\n" : "\n");
    return ask_print(ask, out.data, out.size);
}

/* ---- names in URLs ---- */

static void escape(struct buf *target, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL) {
            (void)buf_append(target, text, 1);
        } else {
            (void)buf_printf(target, "%%%02X", (unsigned)(unsigned char)*text);
        }
    }
}

void ask_path(struct buf *target, ...)
{
    va_list names;
    const char *name;

    va_start(names, target);
    while ((name = va_arg(names, const char *)) != NULL) {
        (void)buf_append_text(target, "/");
        escape(target, name);
    }
    va_end(names);
}

void ask_query(struct buf *target, const char *name, const char *value)
{
    if (value == NULL) {
        return;
    }
    (void)buf_printf(target, "%c%s=", strchr(target->data, '?') == NULL ? '?' : '&', name);
    escape(target, value);
}
