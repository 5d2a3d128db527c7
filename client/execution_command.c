/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: list executions, print what they wrote, end them.
 * Owns: nothing.
 * Threads: main.
 * May include: client, lib/base.
 */
#include "client/execution_command.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/ask.h"
#include "client/pages.h"
#include "client/show.h"
#include "client/watch.h"
#include "lib/base/cleanup.h"

#define SHOWN 100 /* without --limit */

/* ---- ps ---- */

static void add_row(struct columns *columns, struct json_object *execution)
{
    const char *fault = json_view_text(execution, "fault.type");

    columns_add(columns, json_view_text(execution, "id"));
    columns_add(columns, json_view_text(execution, "kind"));
    columns_add(columns, json_view_text(execution, "state"));
    columns_add(columns, json_view_text(execution, "sessionId"));
    columns_add_age(columns, json_view_text(execution, "createdAt"));
    if (json_view_at(execution, "exitCode") == NULL) {
        columns_add(columns, NULL);
    } else {
        columns_add_whole(columns, json_view_whole(execution, "exitCode", 0));
    }
    columns_add(columns, fault);
}

/* The server lists one state at a time. */
static int list(struct ask *ask, const struct pages *pages)
{
    static const char *const states[] = { "running", "queued" };
    CLEANUP_BUF struct buf all = BUF_INIT(ASK_TARGET_MAX);
    CLEANUP_BUF struct buf running = BUF_INIT(ASK_TARGET_MAX);
    CLEANUP_BUF struct buf queued = BUF_INIT(ASK_TARGET_MAX);
    struct buf *const targets[] = { &running, &queued };

    (void)buf_append_text(&all, "/v1/executions");
    ask_query(&all, "sessionId", flags_value(ask->options, "session"));
    for (size_t i = 0; i < 2; i++) {
        (void)buf_append_text(targets[i], all.data);
        ask_query(targets[i], "state", states[i]);
    }
    return flags_has(ask->options, "all")
               ? pages_list(ask, (const char *const[]){ all.data, NULL }, pages)
               : pages_list(ask, (const char *const[]){ running.data, queued.data, NULL }, pages);
}

int execution_command_list(const struct flags *options)
{
    static const char *const headings[] = { "EXECUTION", "KIND", "STATE", "SESSION",
                                            "AGE",       "EXIT", "FAULT", NULL };
    const struct pages pages = { .headings = headings, .add_row = add_row, .limit = SHOWN };
    struct ask ask;
    int result = ask_begin(&ask, options);

    return ask_end(&ask, result < 0 ? -1 : list(&ask, &pages));
}

int execution_command_kill(const struct flags *options)
{
    struct ask ask;
    int result = ask_begin(&ask, options);

    return ask_end(&ask, result < 0 ? -1 : pages_remove(&ask, "executions"));
}

/* ---- logs ---- */

/* All bytes of one stream there are now. */
static int print_stream(struct ask *ask, const char *execution, const char *stream)
{
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    CLEANUP_BUF struct buf bytes = BUF_INIT(ASK_BODY_MAX);
    struct remote_request request = { .method = "GET", .accept = "application/octet-stream" };
    struct answer answer;
    int more = 1;
    int result;

    ask_path(&target, "v1", "executions", execution, stream, NULL);
    request.target = target.data;
    result = ask_open(ask, &request, &answer);
    while (result == 0 && more == 1) {
        more = answer_take(&answer, &bytes, &ask->err);
        result = more < 0 ? -1 : ask_print(ask, bytes.data, bytes.size);
        buf_reset(&bytes);
    }
    answer_close(&answer);
    return result;
}

/* The events there are, or all that will be. */
static int print_events(struct ask *ask, const char *execution, bool follow)
{
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    struct show show;
    struct watch watch = {
        .ask = ask, .execution = execution, .show = &show, .raw = ask->json, .leave = true
    };
    int result;

    ask_path(&target, "v1", "executions", execution, "events", NULL);
    ask_query(&target, "follow", follow ? NULL : "false");
    watch.target = target.data;
    show_begin(&show, ask);
    show.partial = !follow;
    show.only[0] = flags_has(ask->options, "stdout");
    show.only[1] = flags_has(ask->options, "stderr");
    result = watch_run(&watch);
    show_done(&show);
    return result < 0 || follow ? result : EXIT_SUCCESS;
}

int execution_command_logs(const struct flags *options)
{
    const char *execution = flags_operand(options, 0);
    const bool follow = flags_has(options, "follow");
    const bool is_out = flags_has(options, "stdout");
    struct ask ask;
    int result = ask_begin(&ask, options);

    if (result == 0 && is_out && flags_has(options, "stderr")) {
        result = ask_fail(&ask, "leave both out", "both --stdout and --stderr");
    } else if (result == 0 && !follow && !ask.json && (is_out || flags_has(options, "stderr"))) {
        result = print_stream(&ask, execution, is_out ? "stdout" : "stderr");
    } else if (result == 0) {
        result = print_events(&ask, execution, follow);
    }
    return ask_end(&ask, result);
}
