/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make snapshots of sessions, take in those from elsewhere.
 * Owns: nothing.
 * Threads: handlers on the quick lane; the work on the lane of archives.
 * May include: lib/base, lib/sandbox.
 */
#include "api/away.h"
#include "api/resource.h"
#include "api/resource_snapshot.h"
#include "api/snapshot_in.h"
#include "api/snapshot_out.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/sandbox/snapshots_make.h"

/* The view is freed. */
static void answer(struct api_call *call, int status, struct snapshots_view *view)
{
    CLEANUP_FREE char *location = alloc_printf("/v1/snapshots/%s", view->id);
    struct json_out json;

    resource_reply(call, status, &json);
    api_reply_header(&call->reply, "Location", location);
    snapshot_out_write(&json, view);
    snapshots_view_done(view);
    resource_finish(call, &json);
}

/* ---- of a session ---- */

static int make(struct api_call *call, struct snapshots_view *ret_view, struct err *err)
{
    const struct session_actor actor = resource_actor(call);
    char id[RESOURCE_ID_SIZE];
    struct snapshot_in in;
    int result;

    if (resource_accepts_json(call, err) < 0 || resource_no_query(call, err) < 0 ||
        resource_id(call, "id", ERR_SESSION_NOT_FOUND, id, err) < 0 ||
        snapshot_in_make(call->body, call->body_size, &in, err) < 0) {
        return -1;
    }
    result = snapshots_make(
        call->api->sandbox, &actor,
        &(struct snapshots_make_wanted){
            .session_id = id, .name = in.name, .labels = &in.labels, .cancel = &call->cancel },
        ret_view, err);
    snapshot_in_done(&in);
    return result;
}

static void work_make(struct api_call *call)
{
    struct snapshots_view view;
    struct err err = ERR_INIT;

    if (make(call, &view, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    answer(call, 201, &view);
}

void resource_snapshot_make(struct api_call *call)
{
    away_run(call, work_make);
}

/* ---- from elsewhere ---- */

static void work_import(struct api_call *call)
{
    const struct session_actor actor = resource_actor(call);
    struct snapshots_view view;
    struct err err = ERR_INIT;
    char name[RESOURCE_ID_SIZE];
    bool created = false;

    if (resource_accepts_json(call, &err) < 0 || resource_no_query(call, &err) < 0 ||
        resource_id(call, "id", ERR_BAD_VALUE, name, &err) < 0 ||
        snapshots_make_import(call->api->sandbox, &actor,
                              &(struct snapshots_make_source){
                                  .name = name, .file = call->body_file, .cancel = &call->cancel },
                              &created, &view, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    answer(call, created ? 201 : 200, &view);
}

void resource_snapshot_make_import(struct api_call *call)
{
    away_run(call, work_import);
}
