/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_view: what is told of a session, from its row, the table of those in use and its files.
 * Owns: nothing.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/session_view.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/live.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_table.h"
#include "lib/store/rows_session.h"
#include "lib/work/scan.h"

void session_view_done(struct session_view *view)
{
    free(view->executions);
    options_done(&view->options);
}

/* Those whose end was told are no longer of interest, though they may be in the list for a moment.
 */
static void list_executions(struct sandbox *sandbox, struct session_view *view)
{
    size_t count;
    struct execution **found = live_collect(&sandbox->live, view->id, &count);

    view->executions = count == 0 ? NULL : alloc_zero(count, sizeof(*view->executions));
    for (size_t i = count; i > 0; i--) {
        struct execution *execution = found[i - 1];
        enum execution_state state = execution_state(execution);

        if (state != EXECUTION_DONE) {
            struct session_execution *told = &view->executions[view->execution_count++];

            memcpy(told->id, execution->id, sizeof(told->id));
            told->kind = run_kind_text(execution->request->kind);
            told->queued = state == EXECUTION_QUEUED;
            told->started_ms = atomic_load(&execution->sink.started_ms);
        }
        execution_unref(execution);
    }
    free(found);
}

int session_view_from_row(struct sandbox *sandbox, const struct rows_session *row,
                          struct session_view *ret_view, struct err *err)
{
    struct session_view view = { .owned = row->owned,
                                 .created_ms = row->created_ms,
                                 .updated_ms = row->updated_ms,
                                 .used_ms = row->used_ms };

    memcpy(view.id, row->id, sizeof(view.id));
    if (options_decode(row->options, strlen(row->options), &view.options, err) < 0) {
        return -1;
    }
    if (!row->owned) { /* told as it was resolved */
        free(view.options.workspace);
        view.options.workspace = alloc_text(row->workspace);
    }
    if (session_state_parse(row->state, &view.state) < 0) {
        view.state = SESSION_READY;
    }
    (void)session_table_peek(&sandbox->sessions, row->id, &view);
    list_executions(sandbox, &view);
    view.kernels = kernels_table_count(&sandbox->kernels, row->id);
    if (view.state != SESSION_EXPIRED) {
        view.expires_ms = session_table_expiry(&view.options, view.created_ms, view.used_ms);
    }
    *ret_view = view;
    return 0;
}

void session_view_measure(struct sandbox *sandbox, const struct session_actor *actor,
                          struct session_view *view)
{
    struct session_entry *entry =
        session_table_hold(&sandbox->sessions, actor, view->id, true, NULL);
    struct scan *scan = NULL;

    if (entry == NULL) {
        return;
    }
    if (scan_take(entry->root, &(struct scan_options){ .skip = session_hidden }, &scan, NULL) ==
        0) {
        view->measured = !scan_incomplete(scan);
        view->bytes = scan_bytes(scan);
        view->files = scan_files(scan);
        scan_free(scan);
    }
    session_table_release(entry, false);
}
