/* SPDX-License-Identifier: Apache-2.0 */
/*
 * janitor: the background rounds.
 * Owns: its thread and the cancel token of its deletions.
 * Threads: its own.
 * May include: all of lib.
 */
#include "lib/sandbox/janitor.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/alloc.h"
#include "lib/base/budget.h"
#include "lib/base/cancel.h"
#include "lib/base/clock.h"
#include "lib/base/self.h"
#include "lib/sandbox/environments.h"
#include "lib/sandbox/idempotency.h"
#include "lib/sandbox/records.h"
#include "lib/sandbox/reserve.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_remove.h"
#include "lib/sandbox/session_sweep.h"
#include "lib/sandbox/snapshots.h"
#include "lib/sandbox/spares.h"
#include "lib/sandbox/templates.h"
#include "lib/sandbox/warm.h"
#include "lib/work/blanks.h"
#include "lib/work/workspace.h"

#define ROUND_S 1.0
/* What was deleted just before the end is still removed, if that takes no longer than this. */
#define LAST_ROUND_S 2.0
/* Old records are looked for once in so many rounds, and memory that can be given back. */
#define RECORDS_EVERY 60
/* Directories of calls that nobody used for so long. */
#define BLANKS_NS (60 * CLOCK_NS_PER_S)

struct janitor {
    struct sandbox *sandbox;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool woken;
    bool ending;
    bool ended;
    struct cancel cancel;
};

static void tick_kernels(struct sandbox *sandbox)
{
    size_t count;
    struct warm **found = kernels_table_collect(&sandbox->kernels, NULL, &count);

    for (size_t i = 0; i < count; i++) {
        warm_tick(found[i], clock_mono_ns());
        warm_unref(found[i]);
    }
    free(found);
}

static void purge(struct janitor *janitor)
{
    struct remove_left left;

    (void)workspace_purge(janitor->sandbox->workspaces, &janitor->cancel, &left);
    (void)workspace_purge(environments_directory(janitor->sandbox->environments), &janitor->cancel,
                          &left);
}

static void sweep_round(struct janitor *janitor, unsigned number)
{
    tick_kernels(janitor->sandbox);
    spares_age(janitor->sandbox->spares, clock_mono_ns());
    templates_age(janitor->sandbox->templates, clock_mono_ns());
    blanks_age(janitor->sandbox->blanks, clock_mono_ns() - BLANKS_NS);
    if (budget_missing(janitor->sandbox->budget) > 0) {
        reserve_ask(janitor->sandbox->reserve); /* more may be without use by now */
    }
    session_remove_expired(janitor->sandbox, &janitor->cancel);
    purge(janitor);
    if (number % RECORDS_EVERY == 0) {
        records_expire(janitor->sandbox);
        idempotency_expire(janitor->sandbox);
        snapshots_expire(janitor->sandbox->snapshots);
        if (live_wait_empty(&janitor->sandbox->live, clock_mono_ns())) {
            self_shrink();
        }
    }
}

/* True: another round; false: the end. */
static bool wait_round(struct janitor *janitor)
{
    int64_t deadline = clock_deadline_after_s(ROUND_S);
    struct timespec until = { .tv_sec = deadline / CLOCK_NS_PER_S,
                              .tv_nsec = deadline % CLOCK_NS_PER_S };
    bool more;

    (void)pthread_mutex_lock(&janitor->lock);
    while (!janitor->woken && !janitor->ending && !clock_passed(deadline)) {
        (void)pthread_cond_clockwait(&janitor->changed, &janitor->lock, CLOCK_MONOTONIC, &until);
    }
    janitor->woken = false;
    more = !janitor->ending;
    (void)pthread_mutex_unlock(&janitor->lock);
    return more;
}

static void *run(void *context)
{
    struct janitor *janitor = context;

    session_sweep_run(janitor->sandbox->sweep, &janitor->cancel);
    for (unsigned number = 0; wait_round(janitor); number++) {
        sweep_round(janitor, number);
    }
    purge(janitor);
    (void)pthread_mutex_lock(&janitor->lock);
    janitor->ended = true;
    (void)pthread_cond_signal(&janitor->changed);
    (void)pthread_mutex_unlock(&janitor->lock);
    return NULL;
}

struct janitor *janitor_new(struct sandbox *sandbox, struct err *err)
{
    struct janitor *janitor = alloc_zero(1, sizeof(*janitor));
    int failed;

    janitor->sandbox = sandbox;
    if (cancel_init(&janitor->cancel, err) < 0) {
        free(janitor);
        return NULL;
    }
    (void)pthread_mutex_init(&janitor->lock, NULL);
    (void)pthread_cond_init(&janitor->changed, NULL);
    failed = pthread_create(&janitor->thread, NULL, run, janitor);
    if (failed != 0) {
        (void)err_set(err, ERR_IO, failed, "cannot start a thread: %s", err_errno_text(failed));
        cancel_done(&janitor->cancel);
        free(janitor);
        return NULL;
    }
    (void)pthread_setname_np(janitor->thread, "janitor");
    return janitor;
}

void janitor_wake(struct janitor *janitor)
{
    (void)pthread_mutex_lock(&janitor->lock);
    janitor->woken = true;
    (void)pthread_cond_signal(&janitor->changed);
    (void)pthread_mutex_unlock(&janitor->lock);
}

static bool ends_by(struct janitor *janitor, int64_t deadline)
{
    struct timespec until = { .tv_sec = deadline / CLOCK_NS_PER_S,
                              .tv_nsec = deadline % CLOCK_NS_PER_S };
    bool ended;

    (void)pthread_mutex_lock(&janitor->lock);
    while (!janitor->ended && !clock_passed(deadline)) {
        (void)pthread_cond_clockwait(&janitor->changed, &janitor->lock, CLOCK_MONOTONIC, &until);
    }
    ended = janitor->ended;
    (void)pthread_mutex_unlock(&janitor->lock);
    return ended;
}

void janitor_free(struct janitor *janitor)
{
    if (janitor == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&janitor->lock);
    janitor->ending = true;
    (void)pthread_cond_signal(&janitor->changed);
    (void)pthread_mutex_unlock(&janitor->lock);
    if (!ends_by(janitor, clock_deadline_after_s(LAST_ROUND_S))) {
        cancel_fire(&janitor->cancel, CANCEL_SHUTDOWN);
    }
    (void)pthread_join(janitor->thread, NULL);
    cancel_done(&janitor->cancel);
    (void)pthread_cond_destroy(&janitor->changed);
    (void)pthread_mutex_destroy(&janitor->lock);
    free(janitor);
}
