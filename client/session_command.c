/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make, list, show, remove and fork sessions.
 * Owns: nothing.
 * Threads: main.
 * May include: client, api/json_out.h, lib/base.
 */
#include "client/session_command.h"

#include <stdio.h>
#include <string.h>

#include "client/ask.h"
#include "client/compose.h"
#include "client/pages.h"
#include "lib/base/cleanup.h"

#define SESSIONS "/v1/sessions"

/* ---- make ---- */

static int write_options(struct ask *ask, struct json_out *json)
{
    const struct flags *options = ask->options;

    compose_text(json, "id", flags_value(options, "id"));
    compose_text(json, "setup", flags_value(options, "setup"));
    compose_text(json, "snapshotId", flags_value(options, "snapshot"));
    compose_text(json, "workspace", flags_value(options, "workspace"));
    if (compose_labels(json, options, &ask->err) < 0 ||
        compose_number(json, "idleTimeoutS", options, "idle-timeout", &ask->err) < 0 ||
        compose_number(json, "ttlS", options, "ttl", &ask->err) < 0) {
        return -1;
    }
    return compose_limits(json, options, &ask->err);
}

/* Sends it and prints the id of what was made. */
static int make(struct ask *ask, const char *target, const struct buf *body)
{
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;
    const char *id;

    if (ask_show(ask, "POST", target, body, &tree) < 0) {
        return -1;
    }
    id = json_view_text(tree, "id");
    if (id != NULL) {
        (void)printf("%s\n", id);
    }
    return 0;
}

static int create(struct ask *ask)
{
    CLEANUP_BUF struct buf body = BUF_INIT(COMPOSE_MAX);
    struct json_out json;

    json_out_init(&json, &body);
    json_out_open(&json, '{');
    if (write_options(ask, &json) < 0) {
        return -1;
    }
    json_out_close(&json, '}');
    return make(ask, SESSIONS, &body);
}

int session_command_create(const struct flags *options)
{
    struct ask ask;
    int result = ask_begin(&ask, options);

    return ask_end(&ask, result < 0 ? -1 : create(&ask));
}

static int fork_one(struct ask *ask)
{
    CLEANUP_BUF struct buf body = BUF_INIT(COMPOSE_MAX);
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    struct json_out json;

    ask_path(&target, "v1", "sessions", flags_operand(ask->options, 0), "fork", NULL);
    json_out_init(&json, &body);
    json_out_open(&json, '{');
    compose_text(&json, "id", flags_value(ask->options, "id"));
    json_out_close(&json, '}');
    return make(ask, target.data, &body);
}

int session_command_fork(const struct flags *options)
{
    struct ask ask;
    int result = ask_begin(&ask, options);

    return ask_end(&ask, result < 0 ? -1 : fork_one(&ask));
}

/* ---- look ---- */

static void add_row(struct columns *columns, struct json_object *session)
{
    columns_add(columns, json_view_text(session, "id"));
    columns_add(columns, json_view_text(session, "state"));
    columns_add_age(columns, json_view_text(session, "createdAt"));
    columns_add_age(columns, json_view_text(session, "lastUsedAt"));
    columns_add_whole(columns, json_view_whole(session, "runningExecutions", 0));
    columns_add_whole(columns, json_view_whole(session, "kernels", 0));
}

int session_command_list(const struct flags *options)
{
    static const char *const headings[] = { "SESSION", "STATE",   "AGE", "USED",
                                            "RUNNING", "KERNELS", NULL };
    const struct pages pages = { .headings = headings, .add_row = add_row };
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    struct ask ask;
    int result = ask_begin(&ask, options);

    (void)buf_append_text(&target, SESSIONS);
    ask_query(&target, "label", flags_value(options, "label"));
    return ask_end(
        &ask,
        result < 0 ? -1 : pages_list(&ask, (const char *const[]){ target.data, NULL }, &pages));
}

/* Name and value of each member, one a line. */
static void print_members(struct json_object *object, const char *prefix)
{
    struct json_object *member = NULL;
    const char *name;

    for (size_t i = 0; (name = json_view_member(object, i, &member)) != NULL; i++) {
        CLEANUP_BUF struct buf text = BUF_INIT(ASK_BODY_MAX);
        const char *plain = json_view_text(member, "");
        struct json_object *inner = NULL;

        if (member == NULL) {
            continue;
        }
        if (json_view_member(member, 0, &inner) != NULL) {
            print_members(member, name);
            continue;
        }
        json_view_print(member, &text);
        (void)printf("%s%s%-*s  %s\n", prefix, prefix[0] == '\0' ? "" : ".",
                     prefix[0] == '\0' ? 20 : (int)(19 - strlen(prefix)), name,
                     plain != NULL ? plain : text.data);
    }
}

static int show(struct ask *ask)
{
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;

    ask_path(&target, "v1", "sessions", flags_operand(ask->options, 0), NULL);
    if (ask_show(ask, "GET", target.data, NULL, &tree) < 0) {
        return -1;
    }
    print_members(tree, "");
    return 0;
}

int session_command_show(const struct flags *options)
{
    struct ask ask;
    int result = ask_begin(&ask, options);

    return ask_end(&ask, result < 0 ? -1 : show(&ask));
}

int session_command_remove(const struct flags *options)
{
    struct ask ask;
    int result = ask_begin(&ask, options);

    return ask_end(&ask, result < 0 ? -1 : pages_remove(&ask, "sessions"));
}
