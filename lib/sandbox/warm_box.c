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
#include "lib/sandbox/mounts.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/spare.h"
#include "lib/sandbox/spares.h"
#include "lib/sandbox/vetting.h"
#include "lib/sandbox/warm.h"
#include "lib/sandbox/warm_life.h"
#include "lib/store/rows_kernel.h"

#define OPEN_S 30

/* A request that stands for the kernel: what its session's options say. */
static struct run_request *request_of(const struct warm *warm)
{
    struct run_request *request = run_request_new();

    options_apply(session_hold_options(warm->session), request);
    request->kind = RUN_CELL;
    request->language = warm->language;
    request->limits = warm->limits;
    return request;
}

static void set_kernel(struct warm *warm, struct kernel *kernel)
{
    struct box_enforced enforced;

    box_enforced(kernel_box(kernel), &enforced);
    warm->enforced = (struct run_enforced){
        .memory = enforced.memory, .pids = enforced.pids, .cpu = enforced.cpu, .disk = enforced.disk
    };
    (void)pthread_mutex_lock(&warm->lock);
    warm->kernel = kernel;
    (void)pthread_mutex_unlock(&warm->lock);
}

static int open_kernel(struct warm *warm, struct box *box, const struct strv *env, struct err *err)
{
    const struct kernel_config config = { .language = (enum cell_language)warm->language,
                                          .env = env,
                                          .deadline = clock_deadline_after_s(OPEN_S),
                                          .cancel = &warm->opening };
    const struct warm_death death = { .stop = BOX_STOP_EXITED, .idle = true };
    struct box_outcome outcome;
    struct kernel *kernel;
    char reason[WARM_BOX_REASON_SIZE];

    if (kernel_open(box, &config, &kernel, err) == 0) {
        set_kernel(warm, kernel);
        return 0;
    }
    box_end(box, NULL, &outcome);
    if (err->code == ERR_BOX_START_FAILED) {
        warm_box_reason(&outcome, &death, reason);
        (void)err_prefix(err, "%s", reason);
    } else if (err->code == ERR_DEADLINE) {
        err->code = ERR_BOX_START_FAILED;
    }
    return -1;
}

/* One that was booted ahead for the session's calls serves as well; else one of a template. */
static bool take_spare(struct warm *warm, const struct boxing *like)
{
    struct boxing boxing = *like;
    struct run_request call = *like->request; /* shares all it has */
    struct spare *spare;
    struct kernel *kernel = NULL;

    if (warm->language != RUN_PYTHON) {
        return false;
    }
    call.kind = RUN_CODE;
    call.session = warm->session;
    boxing.request = &call;
    spare = spares_take_other(warm->sandbox->spares, &boxing);
    if (spare == NULL) {
        spare = spare_fork(&boxing);
    }
    if (spare != NULL && spare->booted != NULL && vetting_box(spare->box, &call, NULL) == 0 &&
        kernel_adopt(spare->booted, &spare->change, &kernel, NULL) == 0) {
        spare->box = NULL;
        spare->booted = NULL;
        set_kernel(warm, kernel);
        spares_refill(warm->sandbox->spares);
    }
    spare_free(spare);
    return kernel != NULL;
}

static int start(struct warm *warm, const struct boxing *boxing, struct err *err)
{
    CLEANUP_STRV struct strv env = { 0 };
    struct box *box;

    if (boxing_start(boxing, &box, err) < 0) {
        return -1;
    }
    boxing_env(boxing, &env);
    return open_kernel(warm, box, &env, err);
}

int warm_box_open(struct warm *warm, struct err *err)
{
    struct run_request *like = request_of(warm);
    const struct boxing boxing = { .sandbox = warm->sandbox,
                                   .request = like,
                                   .workspace = session_hold_path(warm->session),
                                   .root = session_hold_root(warm->session),
                                   .cancel = &warm->opening,
                                   .driver = true };
    int result = take_spare(warm, &boxing) ? 0 : start(warm, &boxing, err);

    run_request_free(like);
    return result;
}

/* What there is to be ended: nobody else can reach it any more. */
static struct kernel *take_kernel(struct warm *warm)
{
    struct kernel *kernel;

    (void)pthread_mutex_lock(&warm->lock);
    kernel = CLEANUP_TAKE(warm->kernel);
    (void)pthread_mutex_unlock(&warm->lock);
    return kernel;
}

void warm_box_close(struct warm *warm, bool politely)
{
    struct kernel *kernel = take_kernel(warm);
    struct box_outcome outcome;

    if (kernel != NULL && politely) {
        kernel_close(kernel, &outcome);
    } else if (kernel != NULL) {
        kernel_kill(kernel, &outcome);
    }
}

static void tell_status(int status, char out[static WARM_BOX_REASON_SIZE])
{
    const size_t size = WARM_BOX_REASON_SIZE;

    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));

        (void)snprintf(out, size, "signal %d (%s)", WTERMSIG(status), name == NULL ? "?" : name);
    } else {
        (void)snprintf(out, size, "exit status %d", WEXITSTATUS(status));
    }
}

/* Ended by kernd, since it did not end otherwise. */
static void tell_killed(const struct warm_death *death, char out[static WARM_BOX_REASON_SIZE])
{
    const bool late = death->stop == BOX_STOP_DEADLINE;

    (void)snprintf(out, WARM_BOX_REASON_SIZE, "%s: %s", late ? "timeout" : "cancelled",
                   death->at_once ? "the kernel was killed with its cell, as onTimeout asked"
                                  : "a cell went on after it was interrupted, and was killed");
}

void warm_box_reason(const struct box_outcome *outcome, const struct warm_death *death,
                     char out[static WARM_BOX_REASON_SIZE])
{
    const size_t size = WARM_BOX_REASON_SIZE;
    /* Not by the SIGKILL with which kernd ends what is left of a box. */
    const bool own_end = outcome->has_status && !(WIFSIGNALED(outcome->wait_status) &&
                                                  WTERMSIG(outcome->wait_status) == SIGKILL);

    if (outcome->oom || death->stop == BOX_STOP_OOM) {
        (void)snprintf(out, size, "oom: %.150s", outcome->evidence);
    } else if (outcome->escape_blocked) {
        (void)snprintf(out, size, "escape_blocked: %.150s", outcome->evidence);
    } else if (death->stop == BOX_STOP_DEADLINE || death->stop == BOX_STOP_CANCELLED) {
        tell_killed(death, out);
    } else if (death->stop == BOX_STOP_DISK) {
        (void)snprintf(out, size, "disk_full: %.150s", outcome->evidence);
    } else if (death->stop == BOX_STOP_PEER_LOST && (death->nonsense || !own_end)) {
        (void)snprintf(out, size, "protocol: %s",
                       death->nonsense ? "the interpreter's side sent what no driver sends"
                                       : "the connection to the interpreter was closed");
    } else if (outcome->has_status) {
        tell_status(outcome->wait_status, out);
    } else {
        (void)snprintf(out, size, "lost: killed from outside; why is not known");
    }
}

void warm_box_bury(struct warm *warm, const struct warm_death *death,
                   struct box_outcome *ret_outcome)
{
    struct kernel *kernel = take_kernel(warm);
    struct box_outcome outcome = { .evidence = "" };
    char reason[WARM_BOX_REASON_SIZE];

    if (kernel != NULL) {
        kernel_kill(kernel, &outcome);
    }
    warm_box_reason(&outcome, death, reason);
    warm_life_die(warm, reason);
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
