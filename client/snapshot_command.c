/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make, list, restore, remove, export and import snapshots.
 * Owns: nothing.
 * Threads: main.
 * May include: client, api/json_out.h, lib/base.
 */
#include "client/snapshot_command.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/ask.h"
#include "client/compose.h"
#include "client/pages.h"
#include "client/transfer.h"
#include "lib/base/text.h"

/* ---- make, restore ---- */

static int create(struct ask *ask)
{
    CLEANUP_BUF struct buf body = BUF_INIT(COMPOSE_MAX);
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;
    struct json_out json;

    ask_path(&target, "v1", "sessions", flags_operand(ask->options, 0), "snapshots", NULL);
    json_out_init(&json, &body);
    json_out_open(&json, '{');
    compose_text(&json, "name", flags_value(ask->options, "name"));
    if (compose_labels(&json, ask->options, &ask->err) < 0) {
        return -1;
    }
    json_out_close(&json, '}');
    if (ask_show(ask, "POST", target.data, &body, &tree) < 0) {
        return -1;
    }
    if (tree != NULL) {
        (void)printf("%s\n", json_view_text(tree, "id"));
    }
    return 0;
}

int snapshot_command_create(const struct flags *options)
{
    struct ask ask;
    int result = ask_begin(&ask, options);

    return ask_end(&ask, result < 0 ? -1 : create(&ask));
}

static int restore(struct ask *ask)
{
    CLEANUP_BUF struct buf body = BUF_INIT(COMPOSE_MAX);
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;
    struct json_out json;

    ask_path(&target, "v1", "sessions", flags_operand(ask->options, 1), "restore", NULL);
    json_out_init(&json, &body);
    json_out_open(&json, '{');
    compose_text(&json, "snapshotId", flags_operand(ask->options, 0));
    json_out_close(&json, '}');
    return ask_show(ask, "POST", target.data, &body, &tree);
}

int snapshot_command_restore(const struct flags *options)
{
    struct ask ask;
    int result = ask_begin(&ask, options);

    return ask_end(&ask, result < 0 ? -1 : restore(&ask));
}

/* ---- list, remove ---- */

static void add_row(struct columns *columns, struct json_object *snapshot)
{
    columns_add(columns, json_view_text(snapshot, "id"));
    columns_add(columns, json_view_text(snapshot, "name"));
    columns_add(columns, json_view_text(snapshot, "sessionId"));
    columns_add_bytes(columns, json_view_whole(snapshot, "bytes", -1));
    columns_add_whole(columns, json_view_whole(snapshot, "entries", 0));
    columns_add_age(columns, json_view_text(snapshot, "createdAt"));
}

int snapshot_command_list(const struct flags *options)
{
    static const char *const headings[] = { "SNAPSHOT", "NAME", "SESSION", "SIZE",
                                            "ENTRIES",  "AGE",  NULL };
    const struct pages pages = { .headings = headings, .add_row = add_row };
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    struct ask ask;
    int result = ask_begin(&ask, options);

    (void)buf_append_text(&target, "/v1/snapshots");
    ask_query(&target, "sessionId", flags_value(options, "session"));
    return ask_end(
        &ask,
        result < 0 ? -1 : pages_list(&ask, (const char *const[]){ target.data, NULL }, &pages));
}

int snapshot_command_remove(const struct flags *options)
{
    struct ask ask;
    int result = ask_begin(&ask, options);

    return ask_end(&ask, result < 0 ? -1 : pages_remove(&ask, "snapshots"));
}

/* ---- archives ---- */

/* The first operand names the snapshot, the second the file. */
static int move_archive(const struct flags *options,
                        int (*move)(struct ask *ask, const char *target, const char *file))
{
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    struct ask ask;
    int result = ask_begin(&ask, options);

    ask_path(&target, "v1", "snapshots", flags_operand(options, 0), "content", NULL);
    if (result == 0) {
        result = move(&ask, target.data, flags_operand(options, 1));
    }
    return ask_end(&ask, result);
}

int snapshot_command_export(const struct flags *options)
{
    return move_archive(options, transfer_get_file);
}

int snapshot_command_import(const struct flags *options)
{
    return move_archive(options, transfer_put_file);
}
