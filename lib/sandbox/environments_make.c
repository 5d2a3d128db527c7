/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environments_make: from a description to a directory that is never written again.
 * Owns: nothing that lasts.
 * Threads: any but the event one; builds end on run threads.
 * May include: all of lib.
 */
#include "lib/sandbox/environments_make.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/sandbox/admission.h"
#include "lib/sandbox/environments_internal.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/executions.h"
#include "lib/sandbox/janitor.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/setup.h"
#include "lib/sandbox/vetting.h"
#include "lib/work/scan.h"
#include "lib/work/workspace.h"

/*
 * Arguments: the setup's shell text or an empty one, then the modules. All that is written goes
 * one way, so that the log has it in its order. The modules are imported by a plain interpreter:
 * the log has the traceback of one that fails, and its name at the end; bytecode is written while
 * it can be.
 */
#define BUILD                                               \
    "exec 2>&1\n"                                           \
    "if [ -n \"$1\" ]; then sh -c \"$1\" || exit; fi\n"     \
    "shift\n"                                               \
    "[ $# -eq 0 ] || exec python3 -c '"                     \
    "import importlib, sys, traceback\n"                    \
    "for name in sys.argv[1:]:\n"                           \
    "    try:\n"                                            \
    "        importlib.import_module(name)\n"               \
    "    except BaseException as why:\n"                    \
    "        traceback.print_exc()\n"                       \
    "        sys.exit(f\"{name}" ENVIRONMENTS_NOT_PRELOADED \
    "{type(why).__name__}: {why}\")' \"$@\"\n"

static void set_state(struct rows_environment *row, enum environments_state state)
{
    (void)snprintf(row->state, sizeof(row->state), "%s", environments_state_text(state));
}

static bool is_in(const struct rows_environment *row, enum environments_state state)
{
    return text_equal(row->state, environments_state_text(state));
}

/* ---- what is to be built ---- */

static char *version_of(struct sandbox *sandbox, enum run_language language)
{
    return alloc_text(sandbox_language_version(sandbox, language));
}

/* Its content depends on the interpreters that the setup may use. */
static void fill_spec(struct sandbox *sandbox, const struct environments_wanted *wanted,
                      struct environment_spec *spec)
{
    struct boxes_abilities abilities;

    boxes_abilities(sandbox->boxes, &abilities);
    *spec = (struct environment_spec){ .engine = alloc_text(abilities.engine),
                                       .python = version_of(sandbox, RUN_PYTHON),
                                       .setup = alloc_text(wanted->setup) };
    if (wanted->setup != NULL) {
        spec->node = version_of(sandbox, RUN_NODE);
    }
    strv_copy(&spec->preload, &wanted->preload);
}

static int fill_row(struct sandbox *sandbox, const struct environments_wanted *wanted,
                    struct rows_environment *row, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT(ENVIRONMENT_SPEC_MAX);
    struct environment_spec spec;
    int result;

    fill_spec(sandbox, wanted, &spec);
    result = environment_spec_encode(&spec, &text, err);
    environment_spec_done(&spec);
    if (result < 0) {
        return -1;
    }
    environment_spec_id(&text, row->id);
    (void)snprintf(row->name, sizeof(row->name), "%s", wanted->name == NULL ? "" : wanted->name);
    set_state(row, ENVIRONMENTS_BUILDING);
    row->spec = buf_take(&text, NULL);
    row->created_ms = clock_wall_ms();
    row->used_ms = row->created_ms;
    return 0;
}

static int check(struct sandbox *sandbox, const struct environments_wanted *wanted, struct err *err)
{
    struct boxes_abilities abilities;

    boxes_abilities(sandbox->boxes, &abilities);
    if (wanted->engine != NULL && !text_equal(wanted->engine, abilities.engine)) {
        return err_field(err, ERR_NOT_SUPPORTED_HERE, "/engine", "this server's engine is %s",
                         abilities.engine);
    }
    if (wanted->setup == NULL && wanted->preload.count == 0) {
        return err_field(err, ERR_BAD_VALUE, "/setup",
                         "an environment has a setup, modules to preload, or both");
    }
    return limits_check(&wanted->limits, &sandbox->maxima, err) < 0 ||
                   sandbox_space(sandbox, err) < 0
               ? -1
               : 0;
}

/* ---- the build ---- */

static struct run_request *build_request(const struct environments *environments,
                                         const struct environments_wanted *wanted,
                                         const struct rows_environment *row,
                                         const struct stat *part)
{
    struct run_request *request = run_request_new();
    CLEANUP_STRV struct strv setup = { 0 };

    request->kind = RUN_SETUP;
    request->network = wanted->setup != NULL;
    request->track_files = false;
    request->limits = wanted->limits;
    if (request->limits.timeout_s < SETUP_TIMEOUT_MIN_S) {
        request->limits.timeout_s = SETUP_TIMEOUT_MIN_S;
    }
    request->builds = alloc_text(row->id);
    /* Where it will be seen is where it is made: what has its path in it stays right. */
    request->workspace = alloc_printf("%s/%s" ENVIRONMENTS_PART, environments->path, row->id);
    run_mount_add(&request->mounts, &request->mount_count, request->workspace, SETUP_LAYER, true);
    request->mounts[0].device = part->st_dev;
    request->mounts[0].inode = part->st_ino;
    strv_add(&request->env, "PYTHONPATH=" SETUP_LAYER);
    strv_add(&request->env, "NODE_PATH=" SETUP_LAYER "/node_modules");
    if (wanted->setup != NULL) {
        setup_command(wanted->setup, SETUP_LAYER, &setup);
    }
    strv_add_all(&request->command, "sh", "-c", BUILD, "sh",
                 setup.count > 0 ? setup.items[setup.count - 1] : "", NULL); /* of sh -c text */
    strv_copy(&request->command, &wanted->preload);
    return request;
}

/* An empty directory for the build, in place of one that was left. */
static int make_part(struct environments *environments, const char *id, struct stat *ret_status,
                     struct err *err)
{
    CLEANUP_FREE char *name = alloc_printf("%s" ENVIRONMENTS_PART, id);
    CLEANUP_FD int part = -1;

    if (workspace_discard(environments->directory, name, err) < 0 ||
        workspace_create(environments->directory, name, &part, err) < 0) {
        return -1;
    }
    return fstat(part, ret_status) < 0 ? err_set(err, ERR_IO, errno, "the build has no directory")
                                       : 0;
}

/* Locked. The row is in the store, and no build of it under way. */
static struct execution *begin(struct environments *environments, const struct session_actor *actor,
                               const struct environments_wanted *wanted,
                               struct rows_environment *row, struct err *err)
{
    struct execution *build;
    struct run_request *request;
    struct stat part;

    if (make_part(environments, row->id, &part, err) < 0) {
        return NULL;
    }
    request = build_request(environments, wanted, row, &part);
    request->caller = actor->caller;
    build = admission_submit(environments->sandbox, request, err);
    if (build != NULL) {
        (void)snprintf(row->execution_id, sizeof(row->execution_id), "%s", execution_id(build));
        (void)rows_environment_update(environments->sandbox->store, row, NULL);
    }
    return build;
}

/* Locked. Undoes what was begun for a build that can't be: a row that was there says "failed". */
static void give_up(struct environments *environments, struct rows_environment *row, bool is_new)
{
    CLEANUP_FREE char *part = alloc_printf("%s" ENVIRONMENTS_PART, row->id);

    (void)workspace_discard(environments->directory, part, NULL);
    if (is_new) {
        (void)rows_environment_delete(environments->sandbox->store, row->id, NULL);
    } else {
        set_state(row, ENVIRONMENTS_FAILED);
        (void)rows_environment_update(environments->sandbox->store, row, NULL);
    }
}

static int take_name(struct sandbox *sandbox, struct rows_environment *there,
                     const struct rows_environment *wanted, struct err *err)
{
    if (wanted->name[0] == '\0' || text_equal(there->name, wanted->name)) {
        return 0;
    }
    if (there->name[0] != '\0') {
        return err_field(err, ERR_CONFLICT, "/name", "the environment has the name %s already",
                         there->name);
    }
    memcpy(there->name, wanted->name, sizeof(there->name));
    return rows_environment_update(sandbox->store, there, err);
}

/* Locked. `there` is the row of this content; *ret_build stays NULL when it is ready. */
static int join(struct environments *environments, const struct session_actor *actor,
                const struct environments_wanted *wanted, struct rows_environment *there,
                struct execution **ret_build, struct err *err)
{
    const struct session_actor everybody = { .all = true };
    struct sandbox *sandbox = environments->sandbox;

    if (is_in(there, ENVIRONMENTS_READY)) {
        return 0;
    }
    if (is_in(there, ENVIRONMENTS_BUILDING)) {
        *ret_build = executions_find_live(sandbox, &everybody, there->execution_id, err);
        return *ret_build == NULL ? -1 : 0;
    }
    set_state(there, ENVIRONMENTS_BUILDING);
    *ret_build = begin(environments, actor, wanted, there, err);
    if (*ret_build == NULL) {
        give_up(environments, there, false);
        return -1;
    }
    return 0;
}
/* Locked. */
static int find_or_begin(struct environments *environments, const struct session_actor *actor,
                         const struct environments_wanted *wanted, struct rows_environment *row,
                         struct environments_made *made, struct err *err)
{
    struct store *store = environments->sandbox->store;
    struct rows_environment there = { .spec = NULL };
    int result;

    if (rows_environment_get(store, row->id, &there, NULL) == 0 && text_equal(there.id, row->id)) {
        result = take_name(environments->sandbox, &there, row, err) < 0
                     ? -1
                     : join(environments, actor, wanted, &there, &made->build, err);
        rows_environment_done(&there);
        return result;
    }
    rows_environment_done(&there);
    if (rows_environment_insert(store, row, err) < 0) {
        return err_prefix(err, "name");
    }
    made->is_new = true;
    made->build = begin(environments, actor, wanted, row, err);
    if (made->build == NULL) {
        give_up(environments, row, true);
        return -1;
    }
    return 0;
}

int environments_make(struct sandbox *sandbox, const struct session_actor *actor,
                      const struct environments_wanted *wanted, struct environments_made *ret,
                      struct err *err)
{
    struct environments *environments = sandbox->environments;
    struct environments_made made = { .build = NULL };
    struct rows_environment row = { .spec = NULL };
    int result;

    if (check(sandbox, wanted, err) < 0 || fill_row(sandbox, wanted, &row, err) < 0) {
        return -1;
    }
    (void)pthread_mutex_lock(&environments->lock);
    result = find_or_begin(environments, actor, wanted, &row, &made, err);
    (void)pthread_mutex_unlock(&environments->lock);
    if (result == 0) {
        result = environments_get(sandbox, row.id, &made.view, err);
    }
    rows_environment_done(&row);
    if (result < 0) {
        execution_unref(made.build);
        return -1;
    }
    *ret = made;
    return 0;
}

/* ---- its end ---- */

/* What the build wrote, and behind it how it ended if the sandbox knows more. */
static void write_log(const struct environments *environments, const struct execution *execution,
                      const struct err *failure)
{
    const struct run_result *result = &execution->result;
    const char *words = failure->code != ERR_NONE         ? failure->msg
                        : result->fault != RUN_FAULT_NONE ? result->fault_message
                                                          : NULL;
    CLEANUP_BUF struct buf text = BUF_INIT(result->stdout_data.size + sizeof(failure->msg) + 1);
    CLEANUP_FREE char *path =
        alloc_printf("%s/%s" ENVIRONMENTS_LOG, environments->path, execution->request->builds);

    (void)buf_append(&text, result->stdout_data.data, result->stdout_data.size);
    if (words != NULL) {
        (void)buf_printf(&text, "%s\n", words);
    }
    if (fd_write_file(path, text.data, text.size, 0600) < 0) {
        log_line(LOG_WARNING, "environment_log", "error", err_errno_text(errno), NULL);
    }
}

/* The directory gets its final name, on disk before the row says that it is there. */
static int seal(const struct environments *environments, struct rows_environment *row,
                struct err *err)
{
    CLEANUP_FREE char *part = alloc_printf("%s" ENVIRONMENTS_PART, row->id);
    CLEANUP_FD int root = -1;
    struct scan *scan = NULL;

    if (workspace_open(environments->directory, part, &root, err) < 0 ||
        scan_take(root, NULL, &scan, err) < 0) {
        return -1;
    }
    row->bytes = scan_disk(scan);
    scan_free(scan);
    if (workspace_discard(environments->directory, row->id, err) < 0) {
        return -1;
    }
    if (syncfs(root) < 0 ||
        renameat(environments->directory, part, environments->directory, row->id) < 0) {
        return err_set(err, ERR_IO, errno, "the environment can't be kept: %s",
                       err_errno_text(errno));
    }
    return 0;
}

/* Locked. */
static void settle(struct environments *environments, struct execution *execution, bool good,
                   const struct err *failure)
{
    const char *id = execution->request->builds;
    CLEANUP_FREE char *part = alloc_printf("%s" ENVIRONMENTS_PART, id);
    struct rows_environment row = { .spec = NULL };
    struct err kept = *failure;

    if (rows_environment_get(environments->sandbox->store, id, &row, NULL) == 0) {
        good = good && seal(environments, &row, &kept) == 0;
        write_log(environments, execution, &kept);
        set_state(&row, good ? ENVIRONMENTS_READY : ENVIRONMENTS_FAILED);
        (void)rows_environment_update(environments->sandbox->store, &row, NULL);
        rows_environment_done(&row);
    }
    if (!good) {
        (void)workspace_discard(environments->directory, part, NULL);
    }
}

void environments_make_settle(struct execution *execution, bool good, const struct err *failure)
{
    struct environments *environments = execution->sandbox->environments;

    if (execution->request->builds == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&environments->lock);
    settle(environments, execution, good, failure);
    (void)pthread_mutex_unlock(&environments->lock);
    janitor_wake(execution->sandbox->janitor);
}
