/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: keep the files of a session for a model, and bring them back.
 * Owns: work under way.
 * Threads: see mcp_snapshot.h.
 * May include: lib/base, lib/sandbox.
 */
#include "api/mcp_snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/mcp_exchange.h"
#include "api/mcp_result.h"
#include "api/mcp_session.h"
#include "api/resource.h"
#include "lib/base/alloc.h"
#include "lib/base/container.h"
#include "lib/base/pool.h"
#include "lib/sandbox/sandbox.h"
#include "lib/sandbox/session_archive.h"
#include "lib/sandbox/snapshots_make.h"

#define TEXT_SIZE 512

struct work {
    struct pool_job job;
    struct mcp_request *request;
    struct mcp_arguments *arguments;
    int (*run)(struct work *work, struct mcp_result *result, struct err *err);
    char session[SESSION_ID_SIZE];
    struct cancel cancel;
};

static void work_free(struct work *work)
{
    cancel_done(&work->cancel);
    mcp_arguments_free(work->arguments);
    free(work);
}

static void work_fail(struct work *work, const struct err *err)
{
    mcp_exchange_set_work(work->request, NULL);
    mcp_result_fail(work->request, err);
    work_free(work);
}

/* ---- what is done ---- */

/* 0 and the filled result, or -1. */
static int make(struct work *work, struct mcp_result *result, struct err *err)
{
    const struct snapshots_make_wanted wanted = { .session_id = work->session,
                                                  .name = work->arguments->name,
                                                  .cancel = &work->cancel };
    struct snapshots_view view;
    char text[TEXT_SIZE];
    int size;

    if (snapshots_make(work->request->api->sandbox, &work->request->actor, &wanted, &view, err) <
        0) {
        return -1;
    }
    mcp_result_init(result, true);
    json_out_key(&result->json, "snapshot_id");
    json_out_string(&result->json, view.id);
    json_out_key(&result->json, "entries");
    json_out_count(&result->json, view.entries);
    json_out_key(&result->json, "bytes");
    json_out_count(&result->json, view.bytes);
    size = snprintf(text, sizeof(text),
                    "snapshot %s: %" PRIu64 " files and directories, %" PRIu64 " bytes", view.id,
                    view.entries, view.bytes);
    mcp_result_text(result, text, (size_t)size);
    snapshots_view_done(&view);
    return 0;
}

static int restore(struct work *work, struct mcp_result *result, struct err *err)
{
    const struct session_archive_snapshot snapshot = { .id = work->arguments->name,
                                                       .cancel = &work->cancel };
    struct session_archive_taken taken;
    char text[TEXT_SIZE];
    int size;

    if (session_archive_restore(work->request->api->sandbox, &work->request->actor, work->session,
                                &snapshot, &taken, err) < 0) {
        if (err->code == ERR_SESSION_BUSY) {
            (void)err_remedy(err, "end what runs in the session (reset_kernel for a warm "
                                  "interpreter), and try again");
        }
        return -1;
    }
    mcp_result_init(result, true);
    json_out_key(&result->json, "entries");
    json_out_count(&result->json, taken.entries);
    size =
        snprintf(text, sizeof(text), "restored: %" PRIu64 " files and directories", taken.entries);
    mcp_result_text(result, text, (size_t)size);
    return 0;
}

/* ---- away ---- */

static void run_work(struct pool_job *job)
{
    struct work *work = CONTAINER_OF(job, struct work, job);
    struct mcp_result result;
    struct err err = ERR_INIT;

    if (work->run(work, &result, &err) < 0) {
        work_fail(work, &err);
        return;
    }
    mcp_exchange_set_work(work->request, NULL);
    mcp_result_send(&result, work->request);
    work_free(work);
}

static void drop_work(struct pool_job *job)
{
    struct err err = ERR_INIT;

    (void)err_set(&err, ERR_SHUTTING_DOWN, 0, "the server is shutting down");
    work_fail(CONTAINER_OF(job, struct work, job), &err);
}

static void start(struct mcp_request *request, struct mcp_arguments *arguments,
                  int (*run)(struct work *work, struct mcp_result *result, struct err *err))
{
    struct work *work = alloc_zero(1, sizeof(*work));
    struct session_hold *hold = NULL;
    struct err err = ERR_INIT;

    work->job =
        (struct pool_job){ .run = run_work, .drop = drop_work, .caller = request->actor.caller };
    work->request = request;
    work->arguments = arguments;
    work->run = run;
    work->cancel.fd = -1;
    mcp_session_name(request, arguments, work->session);
    if (cancel_init(&work->cancel, &err) < 0 ||
        mcp_session_hold(request, arguments, &hold, &err) < 0) {
        work_fail(work, &err);
        return;
    }
    session_release(hold, true);
    mcp_exchange_set_work(request, &work->cancel);
    if (sandbox_work(request->api->sandbox, &work->job, &err) < 0) {
        work_fail(work, &err);
    }
}

void mcp_snapshot_make(struct mcp_request *request, struct mcp_arguments *arguments)
{
    start(request, arguments, make);
}

void mcp_snapshot_restore(struct mcp_request *request, struct mcp_arguments *arguments)
{
    start(request, arguments, restore);
}
