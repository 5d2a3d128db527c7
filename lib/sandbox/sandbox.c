/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox: opening, draining and closing; admission of executions to the run lane.
 * Owns: the box factory, the run lane, the workspaces directory, the list of live executions.
 * Threads: any but the event thread. Lock order: sandbox, then execution.
 * May include: all of lib.
 */
#include "lib/sandbox/sandbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/alarm.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/base/fd.h"
#include "lib/box/images.h"
#include "lib/box/seccomp.h"
#include "lib/journal/journal.h"
#include "lib/sandbox/admission.h"
#include "lib/sandbox/environments.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/idempotency.h"
#include "lib/sandbox/janitor.h"
#include "lib/sandbox/kernels.h"
#include "lib/sandbox/lanes.h"
#include "lib/sandbox/language.h"
#include "lib/sandbox/place.h"
#include "lib/sandbox/pull.h"
#include "lib/sandbox/records.h"
#include "lib/sandbox/reserve.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_sweep.h"
#include "lib/sandbox/snapshots.h"
#include "lib/sandbox/spares.h"
#include "lib/sandbox/templates.h"
#include "lib/sandbox/tokens.h"
#include "lib/sandbox/vetting.h"
#include "lib/store/rows_kernel.h"
#include "lib/work/blanks.h"
#include "lib/work/workspace.h"

#define MIB (UINT64_C(1) << 20)
/* Below this much free space in the state directory new work is refused (507). */
#define FREE_SPACE_FLOOR (UINT64_C(64) << 20)
/* After a cancel every box is gone within the stop ladder; this is its outer bound. */
#define LADDER_S 20

static void limits_fill(struct limits *limits, const struct limits *wanted)
{
    limits->timeout_s = wanted->timeout_s > 0 ? wanted->timeout_s : limits->timeout_s;
    limits->memory_mb = wanted->memory_mb > 0 ? wanted->memory_mb : limits->memory_mb;
    limits->cpus = wanted->cpus > 0 ? wanted->cpus : limits->cpus;
    limits->pids = wanted->pids > 0 ? wanted->pids : limits->pids;
    limits->disk_mb = wanted->disk_mb > 0 ? wanted->disk_mb : limits->disk_mb;
    limits->max_output_bytes =
        wanted->max_output_bytes > 0 ? wanted->max_output_bytes : limits->max_output_bytes;
}

/* Resolved once: what no workspace or mount may reach. */
static void make_host_rules(struct sandbox *sandbox, const struct sandbox_config *config)
{
    sandbox->home = config->home == NULL ? NULL : hostdir_resolve(config->home);
    for (const char *const *root = config->workspace_roots; root != NULL && *root != NULL; root++) {
        CLEANUP_FREE char *resolved = hostdir_resolve(*root);

        /* One that is not there yet allows what it says. */
        strv_add(&sandbox->roots, resolved != NULL ? resolved : *root);
    }
    sandbox->own_resolved[0] = hostdir_resolve(config->state_dir);
    sandbox->own_resolved[1] = hostdir_resolve(config->runtime_dir);
    sandbox->host_rules = (struct hostdir_rules){
        .home = sandbox->home,
        .own = (const char *const *)sandbox->own_resolved,
        .roots = config->workspace_roots == NULL ? NULL : (const char *const *)sandbox->roots.items
    };
}

/* The state directory: its lock and database first, then what lies around the rows. */
static int open_state(struct sandbox *sandbox, const struct sandbox_config *config, struct err *err)
{
    CLEANUP_FREE char *journal_directory = NULL;

    if (store_open(config->state_dir, &sandbox->store, err) < 0) {
        return -1;
    }
    sandbox->workspaces_path = alloc_printf("%s/workspaces", config->state_dir);
    if (workspace_open_parent(sandbox->workspaces_path, &sandbox->workspaces, err) < 0) {
        return -1;
    }
    sandbox->blanks = blanks_new(sandbox->workspaces, PLACE_FRESH_PREFIX "box");
    journal_directory = alloc_printf("%s/journal", config->state_dir);
    if (journal_open(&(struct journal_config){ .directory = journal_directory }, &sandbox->journal,
                     err) < 0) {
        return -1;
    }
    make_host_rules(sandbox, config);
    session_table_init(&sandbox->sessions, sandbox->store, sandbox->workspaces,
                       sandbox->workspaces_path);
    sandbox->sweep = session_sweep_begin(sandbox);
    records_lose(sandbox);
    idempotency_lose(sandbox);
    (void)rows_kernel_lose(sandbox->store, "the server was restarted", clock_wall_ms(), NULL);
    sandbox->tokens = tokens_open(sandbox->store, err);
    return sandbox->tokens != NULL ? 0 : -1;
}

static int open_snapshots(struct sandbox *sandbox, const struct sandbox_config *config,
                          struct err *err)
{
    CLEANUP_FREE char *directory = alloc_printf("%s/snapshots", config->state_dir);

    sandbox->snapshots =
        snapshots_open(sandbox,
                       &(struct snapshots_config){ .directory = directory,
                                                   .max_bytes = config->snapshots_max_bytes,
                                                   .max_age_s = config->snapshots_max_age_s },
                       err);
    return sandbox->snapshots == NULL ? -1 : 0;
}

/* One box can't have more than all of them together. */
static void cut_memory(struct limits *limits, uint64_t budget_mb)
{
    limits->memory_mb = limits->memory_mb > budget_mb ? budget_mb : limits->memory_mb;
}

static void init(struct sandbox *sandbox, const struct sandbox_config *config)
{
    sandbox->workspaces = -1;
    sandbox->render = config->render;
    (void)pthread_mutex_init(&sandbox->lock, NULL);
    (void)pthread_mutex_init(&sandbox->naming, NULL);
    live_init(&sandbox->live);
    kernels_table_init(&sandbox->kernels);
    sandbox->image_pull = config->image_pull;
    limits_maxima(&sandbox->maxima);
    limits_fill(&sandbox->maxima, &config->maxima);
    limits_defaults(&sandbox->defaults);
    limits_fill(&sandbox->defaults, &config->defaults);
    sandbox->capacity = config->capacity;
    capacity_choose(&sandbox->capacity);
    cut_memory(&sandbox->maxima, sandbox->capacity.memory_mb);
    cut_memory(&sandbox->defaults, sandbox->capacity.memory_mb);
    sandbox->budget = budget_new(sandbox->capacity.memory_mb * MIB);
}

int sandbox_open(const struct sandbox_config *config, struct sandbox **ret_sandbox, struct err *err)
{
    struct sandbox *sandbox = alloc_zero(1, sizeof(*sandbox));

    init(sandbox, config);
    if (lanes_open(sandbox, config, err) < 0 || open_state(sandbox, config, err) < 0 ||
        open_snapshots(sandbox, config, err) < 0 ||
        (sandbox->environments = environments_open(sandbox, config->state_dir, err)) == NULL ||
        lanes_open_confined(sandbox, err) < 0) {
        sandbox_close(sandbox);
        return -1;
    }
    *ret_sandbox = sandbox;
    return 0;
}

void sandbox_close(struct sandbox *sandbox)
{
    if (sandbox == NULL) {
        return;
    }
    if (sandbox->reserve != NULL) { /* what waits asks it */
        pool_close(sandbox->pool);
        pool_close(sandbox->background);
    }
    pool_free(sandbox->files); /* it wakes the janitor */
    janitor_free(sandbox->janitor);
    alarm_free(sandbox->alarm);
    reserve_free(sandbox->reserve);
    spares_free(sandbox->spares);
    pool_free(sandbox->background);
    pool_free(sandbox->pool);
    templates_free(sandbox->templates);
    budget_free(sandbox->budget);
    boxes_close(sandbox->boxes);
    session_sweep_free(sandbox->sweep);
    if (sandbox->sessions.store != NULL) {
        session_table_done(&sandbox->sessions);
    }
    snapshots_close(sandbox->snapshots);
    tokens_close(sandbox->tokens);
    environments_close(sandbox->environments);
    journal_close(sandbox->journal);
    store_close(sandbox->store);
    blanks_free(sandbox->blanks);
    fd_close(sandbox->workspaces);
    free(sandbox->workspaces_path);
    free(sandbox->home);
    strv_done(&sandbox->roots);
    free(sandbox->own_resolved[0]);
    free(sandbox->own_resolved[1]);
    kernels_table_done(&sandbox->kernels);
    live_done(&sandbox->live);
    (void)pthread_mutex_destroy(&sandbox->naming);
    (void)pthread_mutex_destroy(&sandbox->lock);
    free(sandbox);
}

void sandbox_drain(struct sandbox *sandbox, int64_t deadline)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    sandbox->closing = true;
    (void)pthread_mutex_unlock(&sandbox->lock);
    pool_close(sandbox->pool);
    pool_close(sandbox->background);
    pool_close(sandbox->files);
    (void)live_wait_empty(&sandbox->live, deadline);
    live_cancel_all(&sandbox->live, CANCEL_SHUTDOWN);
    (void)live_wait_empty(&sandbox->live, clock_deadline_after_s(LADDER_S));
    kernels_table_close(&sandbox->kernels, NULL, clock_deadline_after_s(LADDER_S));
}

bool sandbox_closing(struct sandbox *sandbox)
{
    bool closing;

    (void)pthread_mutex_lock(&sandbox->lock);
    closing = sandbox->closing;
    (void)pthread_mutex_unlock(&sandbox->lock);
    return closing;
}

int sandbox_space(struct sandbox *sandbox, struct err *err)
{
    struct statvfs space;

    if (fstatvfs(sandbox->workspaces, &space) < 0) {
        return err_set(err, ERR_IO, errno, "the state directory can't be read: %s",
                       err_errno_text(errno));
    }
    if ((uint64_t)space.f_bavail * space.f_frsize < FREE_SPACE_FLOOR) {
        (void)err_set(err, ERR_STORE_FULL, ENOSPC,
                      "less than 64 MiB are free where the server keeps its state");
        return err_remedy(err, "free disk space, or start kernd with --state on a larger disk");
    }
    if ((space.f_flag & ST_RDONLY) != 0) {
        return err_set(err, ERR_NOT_READY, EROFS, "the state directory is on a read-only disk");
    }
    return 0;
}

int sandbox_ready(struct sandbox *sandbox, struct err *err)
{
    if (sandbox_closing(sandbox)) {
        return err_set(err, ERR_SHUTTING_DOWN, 0, "the server is shutting down");
    }
    if (sandbox_space(sandbox, err) < 0) {
        return -1;
    }
    if (store_check(sandbox->store, err) < 0) {
        return -1;
    }
    return boxes_ready(sandbox->boxes, err);
}

static bool is_empty(struct pool *pool)
{
    struct pool_stats stats;

    pool_stats(pool, &stats);
    return stats.running == 0 && stats.queued == 0;
}

bool sandbox_idle(struct sandbox *sandbox)
{
    return live_wait_empty(&sandbox->live, 0) && is_empty(sandbox->pool) &&
           is_empty(sandbox->background) && is_empty(sandbox->files) &&
           kernels_table_count(&sandbox->kernels, NULL) == 0;
}

const struct capacity *sandbox_capacity(const struct sandbox *sandbox)
{
    return &sandbox->capacity;
}

const struct limits *sandbox_maxima(const struct sandbox *sandbox)
{
    return &sandbox->maxima;
}

const struct limits *sandbox_defaults(const struct sandbox *sandbox)
{
    return &sandbox->defaults;
}

struct steps_totals *sandbox_steps(struct sandbox *sandbox)
{
    return &sandbox->steps;
}

int sandbox_images_list(struct sandbox *sandbox, struct buf *out, struct err *err)
{
    return images_list(sandbox->boxes, out, err);
}

int sandbox_images_load(struct sandbox *sandbox, int file, struct strv *ret_names, struct err *err)
{
    return images_load(sandbox->boxes, file, ret_names, err);
}

size_t sandbox_engines(struct sandbox *sandbox,
                       struct boxes_engine_view ret_views[BOXES_ENGINES_MAX])
{
    return boxes_engines(sandbox->boxes, ret_views);
}

void sandbox_engine_names(struct sandbox *sandbox, const char **ret_own, const char **ret_other)
{
    boxes_engines_names(sandbox->boxes, ret_own, ret_other);
}

void sandbox_abilities(struct sandbox *sandbox, struct boxes_abilities *ret_abilities)
{
    boxes_abilities(sandbox->boxes, ret_abilities);
}

/* Two threads may probe at once; the first to come back is kept, so a told text never changes. */
static void probe_language(struct sandbox *sandbox, enum run_language language)
{
    char version[SANDBOX_VERSION_SIZE];
    CLEANUP_FREE char *path = alloc_printf("%s/%s", sandbox->workspaces_path, WORKSPACE_TRASH);

    if (language_probe(sandbox->boxes, path, language, version, sizeof(version)) < 0) {
        return;
    }
    (void)pthread_mutex_lock(&sandbox->lock);
    if (!sandbox->language_known[language]) {
        memcpy(sandbox->language_version[language], version, sizeof(version));
        sandbox->language_known[language] = true;
    }
    (void)pthread_mutex_unlock(&sandbox->lock);
}

const char *sandbox_language_version(struct sandbox *sandbox, enum run_language language)
{
    const char *version = sandbox->language_version[language];
    bool known;

    (void)pthread_mutex_lock(&sandbox->lock);
    known = sandbox->language_known[language];
    (void)pthread_mutex_unlock(&sandbox->lock);
    if (!known) {
        probe_language(sandbox, language);
    }
    return version[0] == '\0' ? NULL : version;
}

struct execution *sandbox_submit(struct sandbox *sandbox, struct run_request *request,
                                 struct err *err)
{
    if (request->kind == RUN_CELL) {
        return kernels_submit(sandbox, request, err);
    }
    if ((request->kind == RUN_PULL ? pull_check(sandbox, request, err)
                                   : vetting_request(sandbox, request, err)) < 0 ||
        sandbox_space(sandbox, err) < 0) {
        run_request_free(request);
        return NULL;
    }
    return admission_submit(sandbox, request, err);
}

int sandbox_work(struct sandbox *sandbox, struct pool_job *job, struct err *err)
{
    return pool_submit(sandbox->files, job, err);
}

int sandbox_syscalls(struct buf *out)
{
    return seccomp_describe(out);
}
