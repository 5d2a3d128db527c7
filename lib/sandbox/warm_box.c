/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_box: boxes and rows of kernels.
 * Owns: nothing of its own.
 * Threads: the owner of the kernel.
 * May include: all of lib.
 */
#include "lib/sandbox/warm_box.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/cell/kernel.h"
#include "lib/sandbox/boxing.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/warm.h"
#include "lib/store/rows_kernel.h"

#define OPEN_S 30

/* A request that stands for the kernel: what its session's options say. */
static struct run_request *request_of(const struct warm *warm)
{
    struct run_request *request = run_request_new();

    options_apply(session_hold_options(warm->session), request);
    request->kind = RUN_CELL;
    request->language = warm->language;
    return request;
}

static int open_kernel(struct warm *warm, struct box *box, const struct strv *env, struct err *err)
{
    struct kernel_config config = { .language = (enum cell_language)warm->language,
                                    .env = env,
                                    .deadline = clock_deadline_after_s(OPEN_S),
                                    .cancel = &warm->opening };
    struct box_outcome outcome;
    char reason[128];

    if (kernel_open(box, &config, &warm->kernel, err) == 0) {
        return 0;
    }
    box_end(box, NULL, &outcome);
    warm_box_reason(&outcome, BOX_STOP_EXITED, reason, sizeof(reason));
    return err_prefix(err, "%s", reason);
}

int warm_box_open(struct warm *warm, struct err *err)
{
    CLEANUP_STRV struct strv env = { 0 };
    struct run_request *like = request_of(warm);
    const struct boxing boxing = { .sandbox = warm->sandbox,
                                   .request = like,
                                   .workspace = session_hold_path(warm->session),
                                   .root = session_hold_root(warm->session),
                                   .cancel = &warm->opening,
                                   .driver = true };
    struct box *box;
    int result = boxing_start(&boxing, &box, err);

    if (result == 0) {
        boxing_env(&boxing, &env);
        result = open_kernel(warm, box, &env, err);
    }
    run_request_free(like);
    return result;
}

void warm_box_close(struct warm *warm)
{
    struct box_outcome outcome;
    struct kernel *kernel;

    (void)pthread_mutex_lock(&warm->lock);
    kernel = CLEANUP_TAKE(warm->kernel);
    (void)pthread_mutex_unlock(&warm->lock);
    if (kernel != NULL) {
        kernel_close(kernel, &outcome);
    }
}

bool warm_box_lives(struct warm *warm)
{
    return warm->kernel == NULL || box_lives(kernel_box(warm->kernel));
}

void warm_box_reason(const struct box_outcome *outcome, enum box_stop stop, char *out, size_t size)
{
    if (outcome->oom || stop == BOX_STOP_OOM) {
        (void)snprintf(out, size, "out of memory (%.100s)", outcome->evidence);
    } else if (stop == BOX_STOP_DEADLINE) {
        (void)snprintf(out, size, "timeout: a cell would not be interrupted");
    } else if (stop == BOX_STOP_CANCELLED) {
        (void)snprintf(out, size, "killed: a cancelled cell would not be interrupted");
    } else if (stop == BOX_STOP_PEER_LOST) {
        (void)snprintf(out, size, "protocol: the driver's connection was closed or broken");
    } else if (!outcome->has_status) {
        (void)snprintf(out, size, "killed from outside");
    } else if (WIFSIGNALED(outcome->wait_status)) {
        int number = WTERMSIG(outcome->wait_status);
        const char *name = sigabbrev_np(number);

        (void)snprintf(out, size, "signal %d (%s)", number, name == NULL ? "?" : name);
    } else {
        (void)snprintf(out, size, "exit status %d", WEXITSTATUS(outcome->wait_status));
    }
}

void warm_box_bury(struct warm *warm, enum box_stop stop, struct box_outcome *ret_outcome)
{
    struct box_outcome outcome = { .evidence = "" };
    struct kernel *kernel;
    char reason[200];

    (void)pthread_mutex_lock(&warm->lock);
    kernel = CLEANUP_TAKE(warm->kernel);
    (void)pthread_mutex_unlock(&warm->lock);
    if (kernel != NULL) {
        kernel_close(kernel, &outcome);
    }
    warm_box_reason(&outcome, stop, reason, sizeof(reason));
    warm_set_dead(warm, reason);
    if (ret_outcome != NULL) {
        *ret_outcome = outcome;
    }
}

static void fill_row(struct warm *warm, struct rows_kernel *row)
{
    (void)pthread_mutex_lock(&warm->lock);
    (void)snprintf(row->session_id, sizeof(row->session_id), "%s", warm->session_id);
    (void)snprintf(row->id, sizeof(row->id), "%s", warm->id);
    (void)snprintf(row->language, sizeof(row->language), "%s", run_language_text(warm->language));
    (void)snprintf(row->state, sizeof(row->state), "%s",
                   warm->state == KERNELS_DEAD ? "dead" : "alive");
    row->reason = warm->state == KERNELS_DEAD ? alloc_text(warm->reason) : NULL;
    row->options = alloc_text("");
    row->cells = warm->cells;
    row->created_ms = warm->created_ms;
    row->ended_ms = warm->ended_ms;
    (void)pthread_mutex_unlock(&warm->lock);
}

int warm_box_insert(struct warm *warm, struct err *err)
{
    struct rows_kernel row = { .reason = NULL };
    int result;

    fill_row(warm, &row);
    result = rows_kernel_insert(warm->sandbox->store, &row, err);
    rows_kernel_done(&row);
    return result;
}

void warm_box_record(struct warm *warm)
{
    struct rows_kernel row = { .reason = NULL };

    fill_row(warm, &row);
    (void)rows_kernel_update(warm->sandbox->store, &row, NULL);
    rows_kernel_done(&row);
}

void warm_box_forget(struct warm *warm)
{
    (void)rows_kernel_delete(warm->sandbox->store, warm->session_id, warm->id, NULL);
}
