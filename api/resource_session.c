/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: look up, list, change, delete and fork sessions (resource_session_make.c makes them).
 * Owns: nothing.
 * Threads: handlers on the quick lane; a fork on the lane of copies.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource_session.h"

#include <string.h>

#include "api/away.h"
#include "api/decode.h"
#include "api/resource.h"
#include "api/rights.h"
#include "api/session_in.h"
#include "api/session_out.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/sandbox/sandbox.h"

#define LIST_LIMIT 100
#define LIST_LIMIT_MAX 1000

/* Answers with a session, which is freed. */
static void answer(struct api_call *call, int status, struct session_view *view)
{
    struct json_out json;

    resource_reply(call, status, &json);
    session_out_write(&json, view);
    session_view_done(view);
    resource_finish(call, &json);
}

/* What all of them begin with: JSON wanted, no query, an id. 0 or -1. */
static int begin(const struct api_call *call, char id[static RESOURCE_ID_SIZE], struct err *err)
{
    return resource_accepts_json(call, err) < 0 || resource_no_query(call, err) < 0
               ? -1
               : resource_id(call, "id", ERR_SESSION_NOT_FOUND, id, err);
}

/* ---- look up ---- */

void resource_session_get(struct api_call *call)
{
    const struct session_actor actor = resource_actor(call);
    struct session_view view;
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];

    if (begin(call, id, &err) < 0 ||
        session_get(call->api->sandbox, &actor, id, true, &view, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    answer(call, 200, &view);
}

/* "key:value" of the query is "key=value" in the library. */
static int read_label(const char *text, char **ret_label, struct err *err)
{
    const char *colon = strchr(text, ':');

    if (colon == NULL || colon == text) {
        return err_set(err, ERR_BAD_VALUE, 0,
                       "the query parameter \"label\" must be a key, a colon and a value");
    }
    *ret_label = alloc_printf("%.*s=%s", (int)(colon - text), text, colon + 1);
    return 0;
}

static int read_filter(const struct decode_query *query, struct session_filter *filter,
                       char **ret_label, struct err *err)
{
    static const struct decode_range range = { .min = 1, .max = LIST_LIMIT_MAX };
    const char *state = decode_query_text(query, "state");
    const char *label = decode_query_text(query, "label");
    uint64_t limit = LIST_LIMIT;

    if (decode_query_count(query, "limit", &range, &limit, err) < 0 ||
        (label != NULL && read_label(label, ret_label, err) < 0)) {
        return -1;
    }
    *filter = (struct session_filter){ .limit = (size_t)limit,
                                       .cursor = decode_query_text(query, "cursor"),
                                       .by_state = state != NULL,
                                       .label = *ret_label };
    if (state != NULL && session_state_parse(state, &filter->state) < 0) {
        return err_set(
            err, ERR_BAD_VALUE, 0,
            "the query parameter \"state\" must be creating, ready, deleting or expired");
    }
    return 0;
}

void resource_session_list(struct api_call *call)
{
    static const char *const known[] = { "limit", "cursor", "state", "label", NULL };
    const struct session_actor actor = resource_actor(call);
    CLEANUP_FREE char *label = NULL;
    struct decode_query query;
    struct session_filter filter;
    struct session_page page;
    struct err err = ERR_INIT;
    struct json_out json;

    if (resource_accepts_json(call, &err) < 0 ||
        decode_query(call->query, known, &query, &err) < 0 ||
        read_filter(&query, &filter, &label, &err) < 0 ||
        session_list(call->api->sandbox, &actor, &filter, &page, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    session_out_page(&json, &page);
    session_page_done(&page);
    resource_finish(call, &json);
}

/* ---- change ---- */

/* The options as the body changes them. 0 or -1. */
static int read_patch(struct api_call *call, const char *id, struct options *ret_options,
                      struct err *err)
{
    const struct session_actor actor = resource_actor(call);
    struct run_in_base base = resource_base(call);
    struct session_view view;
    int result;

    if (session_get(call->api->sandbox, &actor, id, false, &view, err) < 0) {
        return -1;
    }
    base.session = &view.options;
    result = session_in_patch(call->body, call->body_size, &base, ret_options, err);
    session_view_done(&view);
    return result;
}

void resource_session_patch(struct api_call *call)
{
    const struct session_actor actor = resource_actor(call);
    struct options options;
    struct session_view view;
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];

    if (begin(call, id, &err) < 0 || read_patch(call, id, &options, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    if (rights_check_options(call, &options, &err) < 0) {
        options_done(&options);
        resource_fail(call, &err);
        return;
    }
    if (session_patch(call->api->sandbox, &actor, id, &options, &view, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    answer(call, 200, &view);
}

void resource_session_keepalive(struct api_call *call)
{
    const struct session_actor actor = resource_actor(call);
    struct session_view view;
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];

    if (begin(call, id, &err) < 0 ||
        session_keepalive(call->api->sandbox, &actor, id, &view, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    answer(call, 200, &view);
}

void resource_session_delete(struct api_call *call)
{
    const struct session_actor actor = resource_actor(call);
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];

    if (resource_no_query(call, &err) < 0 ||
        resource_id(call, "id", ERR_SESSION_NOT_FOUND, id, &err) < 0 ||
        session_delete(call->api->sandbox, &actor, id, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_finish_empty(call);
}

/* ---- fork ---- */

static void work_fork(struct api_call *call)
{
    const struct session_actor actor = resource_actor(call);
    CLEANUP_FREE char *location = NULL;
    CLEANUP_FREE char *to = NULL;
    char from[RESOURCE_ID_SIZE];
    struct session_view view;
    struct err err = ERR_INIT;

    if (begin(call, from, &err) < 0 ||
        session_in_fork(call->body, call->body_size, &to, &err) < 0 ||
        session_fork(
            call->api->sandbox, &actor,
            &(struct session_fork_wanted){ .from = from, .to = to, .cancel = &call->cancel }, &view,
            &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    location = alloc_printf("/v1/sessions/%s", view.id);
    api_reply_header(&call->reply, "Location", location);
    answer(call, 201, &view);
}

void resource_session_fork(struct api_call *call)
{
    away_run(call, work_fork);
}
