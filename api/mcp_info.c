/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: tell a model where it works: session, limits, languages, interpreters.
 * Owns: nothing.
 * Threads: handlers on the quick lane.
 * May include: lib/base, lib/sandbox.
 */
#include "api/mcp_info.h"

#include <inttypes.h>
#include <string.h>

#include "api/mcp_result.h"
#include "api/mcp_session.h"
#include "api/resource.h"
#include "lib/base/buf.h"
#include "lib/sandbox/kernels.h"
#include "lib/sandbox/sandbox.h"

#define TEXT_MAX ((size_t)8192)

static void write_limits(struct json_out *json, const struct limits *limits)
{
    json_out_key(json, "limits");
    json_out_open(json, '{');
    json_out_key(json, "timeout_s");
    json_out_number(json, limits->timeout_s);
    json_out_key(json, "memory_mb");
    json_out_count(json, limits->memory_mb);
    json_out_key(json, "pids");
    json_out_count(json, limits->pids);
    json_out_close(json, '}');
}

static void write_languages(struct json_out *json, struct buf *text, struct sandbox *sandbox)
{
    json_out_key(json, "languages");
    json_out_open(json, '{');
    (void)buf_append_text(text, "languages:");
    for (int i = 0; i < RUN_LANGUAGE_MAX; i++) {
        const enum run_language language = (enum run_language)i;
        const char *version = sandbox_language_version(sandbox, language);

        json_out_key(json, run_language_text(language));
        json_out_string(json, version);
        (void)buf_printf(text, " %s %s;", run_language_text(language),
                         version == NULL ? "(none)" : version);
    }
    json_out_close(json, '}');
    (void)buf_append_text(text, "\n");
}

static void write_kernels(struct json_out *json, struct buf *text, struct kernels_list *list)
{
    json_out_key(json, "kernels");
    json_out_open(json, '[');
    for (size_t i = 0; i < list->count; i++) {
        const struct kernels_view *view = &list->items[i];

        json_out_open(json, '{');
        json_out_key(json, "language");
        json_out_string(json, view->language);
        json_out_key(json, "state");
        json_out_string(json, kernels_state_text(view->state));
        json_out_key(json, "cells");
        json_out_count(json, view->cells);
        json_out_close(json, '}');
        (void)buf_printf(text, "interpreter: %s, %s, %" PRIu64 " cells run\n", view->language,
                         kernels_state_text(view->state), view->cells);
    }
    json_out_close(json, ']');
}

static void describe(struct mcp_result *result, const struct session_view *view, struct buf *text)
{
    struct json_out *json = &result->json;

    json_out_key(json, "session_id");
    json_out_string(json, view->id);
    json_out_key(json, "workspace");
    json_out_string(json, "/workspace");
    json_out_key(json, "files");
    json_out_count(json, view->files);
    json_out_key(json, "bytes");
    json_out_count(json, view->bytes);
    json_out_key(json, "network");
    json_out_bool(json, view->options.network);
    json_out_key(json, "expires_at");
    json_out_time(json, view->expires_ms);
    write_limits(json, &view->options.limits);
    (void)buf_printf(text,
                     "session: %s\nworkspace: /workspace, %" PRIu64 " files, %" PRIu64
                     " bytes\nnetwork: %s\nlimits: %g s a call unless timeout_s says otherwise, "
                     "%" PRIu64 " MiB of memory, %" PRIu64 " processes\n",
                     view->id, view->files, view->bytes, view->options.network ? "yes" : "no",
                     view->options.limits.timeout_s, view->options.limits.memory_mb,
                     view->options.limits.pids);
}

static void answer(struct mcp_request *request, const struct session_view *view,
                   struct kernels_list *kernels)
{
    CLEANUP_BUF struct buf text = BUF_INIT(TEXT_MAX);
    struct mcp_result result;

    mcp_result_init(&result, true);
    describe(&result, view, &text);
    write_languages(&result.json, &text, request->api->sandbox);
    write_kernels(&result.json, &text, kernels);
    mcp_result_text(&result, text.data, text.size);
    mcp_result_send(&result, request);
}

void mcp_info_session(struct mcp_request *request, struct mcp_arguments *arguments)
{
    struct sandbox *sandbox = request->api->sandbox;
    struct session_hold *hold = NULL;
    struct session_view view;
    struct kernels_list kernels;
    struct err err = ERR_INIT;
    char id[SESSION_ID_SIZE];
    int result = mcp_session_hold(request, arguments, &hold, &err);

    session_release(hold, false);
    mcp_session_name(request, arguments, id);
    mcp_arguments_free(arguments);
    if (result < 0 || session_get(sandbox, &request->actor, id, true, &view, &err) < 0) {
        mcp_result_fail(request, &err);
        return;
    }
    if (kernels_list(sandbox, &request->actor, id, &kernels, &err) < 0) {
        session_view_done(&view);
        mcp_result_fail(request, &err);
        return;
    }
    answer(request, &view, &kernels);
    session_view_done(&view);
    kernels_list_done(&kernels);
}
