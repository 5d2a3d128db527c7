/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels: kernels by session and id.
 * Owns: nothing that lasts.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/kernels.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/sandbox/admission.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/warm.h"
#include "lib/sandbox/warm_box.h"
#include "lib/store/rows_kernel.h"

#define DELETE_S 20

static const char *const state_texts[] = {
    [KERNELS_STARTING] = "starting", [KERNELS_IDLE] = "idle", [KERNELS_BUSY] = "busy",
    [KERNELS_FROZEN] = "frozen",     [KERNELS_DEAD] = "dead",
};

const char *kernels_state_text(enum kernels_state state)
{
    return state_texts[state];
}

/* Why a kernel that is not in memory can't be had: it was lost, or never was. Returns -1. */
static int not_here(struct sandbox *sandbox, const char *session_id, const char *id,
                    struct err *err)
{
    struct rows_kernel row = { .reason = NULL };

    if (rows_kernel_get(sandbox->store, session_id, id, &row, NULL) < 0) {
        return err_set(err, ERR_KERNEL_NOT_FOUND, 0, "the session has no kernel %.64s", id);
    }
    (void)err_set(err, ERR_KERNEL_LOST, 0, "the kernel is gone: %s",
                  row.reason == NULL ? "its server ended" : row.reason);
    rows_kernel_done(&row);
    return -1;
}

/* One reference, or NULL with err. */
static struct warm *find(struct sandbox *sandbox, const struct session_actor *actor,
                         const char *session_id, const char *id, struct err *err)
{
    struct session_view session;
    struct warm *warm;

    if (session_get(sandbox, actor, session_id, false, &session, err) < 0) {
        return NULL;
    }
    session_view_done(&session);
    warm = kernels_table_find(&sandbox->kernels, session_id, id);
    if (warm == NULL) {
        (void)not_here(sandbox, session_id, id, err);
    }
    return warm;
}

/* Takes it back out of the table and the store. */
static void undo(struct sandbox *sandbox, struct warm *warm)
{
    warm_box_forget(warm);
    kernels_table_remove(&sandbox->kernels, warm);
}

static int add(struct sandbox *sandbox, struct warm *warm, struct err *err)
{
    if (kernels_table_add(&sandbox->kernels, warm, err) < 0) {
        return -1;
    }
    if (warm_box_insert(warm, err) < 0) {
        kernels_table_remove(&sandbox->kernels, warm);
        return -1;
    }
    return 0;
}

int kernels_open(struct sandbox *sandbox, const struct session_actor *actor, const char *session_id,
                 const struct kernels_options *options, struct kernels_waiter *waiter,
                 struct kernels_view *ret_view, struct err *err)
{
    struct session_hold *hold;
    struct warm *warm;
    int result = -1;

    if (session_hold(sandbox, actor, session_id, &hold, err) < 0) {
        return -1;
    }
    warm = warm_new(sandbox, hold, options, err);
    if (warm == NULL) {
        return -1;
    }
    if (add(sandbox, warm, err) == 0) {
        result = warm_start(warm, err);
        if (result < 0) {
            undo(sandbox, warm);
        }
    }
    if (result == 0) {
        warm_view(warm, ret_view);
        if (waiter != NULL) {
            warm_wait(warm, waiter);
        }
    }
    warm_unref(warm);
    return result;
}

int kernels_get(struct sandbox *sandbox, const struct session_actor *actor, const char *session_id,
                const char *id, struct kernels_view *ret_view, struct err *err)
{
    struct warm *warm = find(sandbox, actor, session_id, id, err);

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

struct execution *kernels_submit(struct sandbox *sandbox, const struct session_actor *actor,
                                 const char *session_id, const char *id,
                                 struct run_request *request, struct err *err)
{
    struct warm *warm = find(sandbox, actor, session_id, id, err);
    struct execution *execution;

    if (warm == NULL || limits_check_cell(&request->limits, &sandbox->maxima, err) < 0) {
        warm_unref(warm);
        run_request_free(request);
        return NULL;
    }
    execution = admission_submit_cell(sandbox, warm, request, err);
    warm_unref(warm);
    return execution;
}

int kernels_interrupt(struct sandbox *sandbox, const struct session_actor *actor,
                      const char *session_id, const char *id, struct execution **ret_cell,
                      struct err *err)
{
    struct warm *warm = find(sandbox, actor, session_id, id, err);
    struct execution *cell = NULL;

    if (warm == NULL) {
        return -1;
    }
    (void)pthread_mutex_lock(&warm->lock);
    if (warm->current != NULL) {
        cell = execution_ref(warm->current);
    }
    (void)pthread_mutex_unlock(&warm->lock);
    if (cell != NULL) {
        cancel_fire(&cell->cancel, CANCEL_REQUESTED);
    }
    warm_unref(warm);
    *ret_cell = cell;
    return 0;
}

int kernels_restart(struct sandbox *sandbox, const struct session_actor *actor,
                    const char *session_id, const char *id, struct kernels_waiter *waiter,
                    struct err *err)
{
    struct warm *warm = find(sandbox, actor, session_id, id, err);
    int result;

    if (warm == NULL) {
        return -1;
    }
    result = warm_restart(warm, waiter, err);
    warm_unref(warm);
    return result;
}

int kernels_delete(struct sandbox *sandbox, const struct session_actor *actor,
                   const char *session_id, const char *id, struct err *err)
{
    struct err failure = ERR_INIT;
    struct warm *warm = find(sandbox, actor, session_id, id, &failure);

    if (warm == NULL && failure.code != ERR_KERNEL_NOT_FOUND && failure.code != ERR_KERNEL_LOST) {
        if (err != NULL) {
            *err = failure;
        }
        return -1;
    }
    if (warm == NULL) {
        return rows_kernel_delete(sandbox->store, session_id, id, err);
    }
    warm_close(warm);
    kernels_table_wait_gone(&sandbox->kernels, warm, clock_deadline_after_s(DELETE_S));
    warm_unref(warm);
    return 0;
}
