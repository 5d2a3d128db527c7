/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels: kernels by session and id.
 * Owns: nothing that lasts.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/kernels.h"

#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/sandbox/admission.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_table.h"
#include "lib/sandbox/warm.h"
#include "lib/sandbox/warm_box.h"
#include "lib/sandbox/warm_exit.h"
#include "lib/store/rows_kernel.h"

static const char *const state_texts[] = {
    [KERNELS_STARTING] = "starting", [KERNELS_IDLE] = "idle", [KERNELS_BUSY] = "busy",
    [KERNELS_FROZEN] = "frozen",     [KERNELS_DEAD] = "dead",
};

const char *kernels_state_text(enum kernels_state state)
{
    return state_texts[state];
}

/* Why a kernel that is not in memory can't be had: it was lost, or never was. */
static void not_here(struct sandbox *sandbox, const struct kernels_name *name, struct err *err)
{
    struct rows_kernel row = { .reason = NULL };

    if (rows_kernel_get(sandbox->store, name->session_id, name->id, &row, NULL) < 0) {
        (void)err_set(err, ERR_KERNEL_NOT_FOUND, 0, "the session has no kernel %.64s", name->id);
        return;
    }
    (void)err_set(err, ERR_KERNEL_LOST, 0, "the kernel is gone with its variables: %s",
                  row.reason == NULL ? "its server ended" : row.reason);
    (void)err_remedy(err, "open a new kernel; it may have the same id");
    rows_kernel_done(&row);
}

/*
 * One reference, or NULL with err. A kernel in memory has a session, whose owner it knows: the
 * store is asked only about others.
 */
static struct warm *find(struct sandbox *sandbox, const struct kernels_name *name, struct err *err)
{
    struct warm *warm = kernels_table_find(&sandbox->kernels, name->session_id, name->id);
    struct session_view session;

    if (warm != NULL && (name->actor.all || name->actor.caller == warm->caller)) {
        return warm;
    }
    warm_unref(warm);
    if (session_get(sandbox, &name->actor, name->session_id, false, &session, err) == 0) {
        session_view_done(&session);
        not_here(sandbox, name, err);
    }
    return NULL;
}

/* Into the table and the store; one that was lost with an earlier server makes room. */
static int add(struct sandbox *sandbox, struct warm *warm, struct err *err)
{
    if (kernels_table_add(&sandbox->kernels, warm, err) < 0) {
        return -1;
    }
    warm_box_forget(warm);
    if (warm_box_insert(warm, err) < 0) {
        warm_fail_start(warm);
        return -1;
    }
    return 0;
}

static int start(struct warm *warm, struct session_hold *hold, struct kernels_waiter *waiter,
                 struct err *err)
{
    /* It may be removed, and its hold gone, as soon as it is started. */
    const bool late = session_table_closed(session_hold_entry(hold));

    if (late) {
        /* The session is being deleted, and whoever does it may have looked for kernels before. */
        warm_fail_start(warm);
        return err_set(err, ERR_SESSION_NOT_FOUND, 0, "the session is being deleted");
    }
    (void)warm_wait(warm, waiter);
    return warm_start(warm, err);
}

int kernels_open(struct sandbox *sandbox, const struct kernels_name *name,
                 const struct kernels_options *options, struct kernels_waiter *waiter,
                 struct err *err)
{
    struct session_hold *hold;
    struct warm *warm;
    int result;

    if (session_hold(sandbox, &name->actor, name->session_id, &hold, err) < 0) {
        return -1;
    }
    warm = warm_new(sandbox, hold, name->id, options, err);
    if (warm == NULL) {
        return -1;
    }
    /* The session may be older than the maxima. */
    result = limits_check(&warm->limits, &sandbox->maxima, err);
    result = result < 0 ? -1 : add(sandbox, warm, err);
    result = result < 0 ? -1 : start(warm, hold, waiter, err);
    warm_unref(warm);
    return result;
}

void kernels_abandon(struct sandbox *sandbox, const char *session_id, const char *id)
{
    struct warm *warm = kernels_table_find(&sandbox->kernels, session_id, id);

    if (warm != NULL) {
        warm_exit_close(warm);
        warm_unref(warm);
    }
}

int kernels_get(struct sandbox *sandbox, const struct kernels_name *name,
                struct kernels_view *ret_view, struct err *err)
{
    struct warm *warm = find(sandbox, name, err);

    if (warm == NULL) {
        return -1;
    }
    warm_view(warm, ret_view);
    warm_unref(warm);
    return 0;
}

void kernels_list_done(struct kernels_list *list)
{
    free(list->items);
    *list = (struct kernels_list){ 0 };
}

int kernels_list(struct sandbox *sandbox, const struct session_actor *actor, const char *session_id,
                 struct kernels_list *ret_list, struct err *err)
{
    struct session_view session;
    struct warm **found;
    size_t count;

    if (session_get(sandbox, actor, session_id, false, &session, err) < 0) {
        return -1;
    }
    session_view_done(&session);
    found = kernels_table_collect(&sandbox->kernels, session_id, &count);
    ret_list->items = alloc_zero(count + 1, sizeof(*ret_list->items));
    ret_list->count = count;
    for (size_t i = 0; i < count; i++) {
        warm_view(found[i], &ret_list->items[i]);
        warm_unref(found[i]);
    }
    free(found);
    return 0;
}

/* What it does not say itself is the kernel's. */
static void inherit(const struct warm *warm, struct run_request *request)
{
    const struct limits own = request->limits;

    request->language = warm->language;
    request->limits = warm->limits;
    if (own.timeout_s > 0) {
        request->limits.timeout_s = own.timeout_s;
    }
    if (own.max_output_bytes > 0) {
        request->limits.max_output_bytes = own.max_output_bytes;
    }
}

struct execution *kernels_submit(struct sandbox *sandbox, struct run_request *request,
                                 struct err *err)
{
    const struct kernels_name name = {
        .actor = { .caller = request->caller, .all = request->all },
        .session_id = request->cell_session,
        .id = request->cell_kernel,
    };
    struct warm *warm = find(sandbox, &name, err);
    struct execution *execution;

    if (warm != NULL) {
        inherit(warm, request);
    }
    if (warm == NULL || limits_check_cell(&request->limits, &sandbox->maxima, err) < 0) {
        warm_unref(warm);
        run_request_free(request);
        return NULL;
    }
    execution = admission_submit_cell(sandbox, warm, request, err);
    warm_unref(warm);
    return execution;
}

int kernels_interrupt(struct sandbox *sandbox, const struct kernels_name *name,
                      struct execution **ret_cell, struct err *err)
{
    struct warm *warm = find(sandbox, name, err);
    struct execution *cell;

    if (warm == NULL) {
        return -1;
    }
    cell = warm_running(warm);
    if (cell != NULL) {
        cancel_fire(&cell->cancel, CANCEL_REQUESTED);
    }
    warm_unref(warm);
    *ret_cell = cell;
    return 0;
}

int kernels_restart(struct sandbox *sandbox, const struct kernels_name *name,
                    struct kernels_waiter *waiter, struct err *err)
{
    struct warm *warm = find(sandbox, name, err);
    int result;

    if (warm == NULL) {
        return -1;
    }
    result = warm_exit_restart(warm, waiter, err);
    warm_unref(warm);
    return result;
}

int kernels_delete(struct sandbox *sandbox, const struct kernels_name *name,
                   struct kernels_waiter *waiter, struct err *err)
{
    struct err failure = ERR_INIT;
    struct warm *warm = find(sandbox, name, &failure);

    if (warm == NULL && failure.code != ERR_KERNEL_NOT_FOUND && failure.code != ERR_KERNEL_LOST) {
        if (err != NULL) {
            *err = failure;
        }
        return -1;
    }
    if (warm == NULL) {
        if (rows_kernel_delete(sandbox->store, name->session_id, name->id, err) < 0) {
            return -1;
        }
        waiter->done(waiter, NULL);
        return 0;
    }
    if (!warm_wait(warm, waiter)) {
        waiter->done(waiter, NULL);
    }
    warm_exit_close(warm);
    warm_unref(warm);
    return 0;
}
