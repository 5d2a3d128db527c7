/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf: which calls may share their spares.
 * Owns: the shape and its spares.
 * Threads: under the lock of spares.c.
 * May include: all of lib.
 */
#include "lib/sandbox/shelf.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/cell/cell.h"
#include "lib/sandbox/boxing.h"
#include "lib/sandbox/spare.h"
#include "lib/sandbox/spares.h"

/* Spares kept for calls without a session, whoever makes them. */
#define TARGET_ONE_SHOT 2
#define TARGET_SESSION 1
/* Beyond it, calls of one shape come faster than boxes are started. */
#define TARGET_MOST 6

static const char *session_of(const struct run_request *request)
{
    return request->session == NULL ? "" : session_hold_id(request->session);
}

static bool wants_driver(const struct run_request *request)
{
    return request->kind == RUN_CODE && cell_needs_driver((enum cell_language)request->language);
}

/* What a session's owner asked for is kept, no less and no more. */
static bool is_fixed(const struct run_request *request)
{
    return request->session != NULL && session_hold_options(request->session)->prewarm_set;
}

static size_t target_of(const struct run_request *request)
{
    const struct options *options;

    if (request->session == NULL) {
        return TARGET_ONE_SHOT;
    }
    options = session_hold_options(request->session);
    return options->prewarm_set ? (size_t)options->prewarm : TARGET_SESSION;
}

bool shelf_fits_any(const struct boxing *boxing)
{
    const struct run_request *request = boxing->request;

    /* Mounts are part of a box from its start; the driver has its directory already. */
    return (request->kind == RUN_COMMAND || request->kind == RUN_CODE) &&
           request->mount_count == 0 && request->workspace == NULL && !request->detach &&
           !(wants_driver(request) && request->cwd != NULL) && target_of(request) > 0;
}

/* A cap may be lowered for one call, and never raised. */
static bool within(uint64_t asked, uint64_t given)
{
    return given == 0 || (asked != 0 && asked <= given);
}

bool shelf_fits(const struct shelf *shelf, const struct boxing *boxing)
{
    const struct run_request *request = boxing->request;
    const struct limits *given = &shelf->like->limits;

    return text_equal(shelf->session_id, session_of(request)) &&
           shelf->driver == wants_driver(request) &&
           (!shelf->driver || shelf->like->language == request->language) &&
           shelf->deps == boxing_has_deps(boxing) && shelf->like->network == request->network &&
           shelf->like->boot == request->boot &&
           shelf->like->deps_readonly == request->deps_readonly &&
           shelf->like->workspace_readonly == request->workspace_readonly &&
           choice_equal(&shelf->like->choice, &request->choice) &&
           text_equal(shelf->like->environment, request->environment) &&
           strv_equal(&shelf->like->preload, &request->preload) &&
           within(request->limits.memory_mb, given->memory_mb) &&
           within(request->limits.pids, given->pids) &&
           within(request->limits.disk_mb, given->disk_mb) &&
           !(request->limits.cpus > given->cpus) && !(request->limits.cpus < given->cpus);
}

struct shelf *shelf_new(struct spares *spares, const struct boxing *boxing)
{
    const struct run_request *request = boxing->request;
    struct shelf *shelf = alloc_zero(1, sizeof(*shelf));

    shelf->spares = spares;
    shelf->references = 1;
    (void)snprintf(shelf->session_id, sizeof(shelf->session_id), "%s", session_of(request));
    shelf->workspace = request->session == NULL ? NULL : alloc_text(boxing->workspace);
    shelf->driver = wants_driver(request);
    shelf->deps = boxing_has_deps(boxing);
    shelf->target = shelf->target_least = target_of(request);
    shelf->target_most =
        is_fixed(request) || shelf->target > TARGET_MOST ? shelf->target : TARGET_MOST;
    shelf->like = run_request_new();
    shelf->like->kind = request->kind;
    shelf->like->language = request->language;
    shelf->like->limits = request->limits;
    shelf->like->network = request->network;
    shelf->like->boot = request->boot;
    shelf->like->deps_readonly = request->deps_readonly;
    shelf->like->workspace_readonly = request->workspace_readonly;
    choice_copy(&shelf->like->choice, &request->choice);
    shelf->like->environment = alloc_text(request->environment);
    strv_copy(&shelf->like->preload, &request->preload);
    shelf->used_ns = clock_mono_ns();
    if (shelf->session_id[0] != '\0') {
        strv_copy(&shelf->like->env, &session_hold_options(request->session)->env);
    }
    return shelf;
}

void shelf_missed(struct shelf *shelf)
{
    if (shelf->filled && shelf->count == 0 && shelf->target < shelf->target_most) {
        shelf->target++;
    }
}

struct spare *shelf_shrink(struct shelf *shelf)
{
    struct spare **at = &shelf->first;
    struct spare *surplus;

    shelf->target = shelf->target_least;
    for (size_t kept = 0; kept < shelf->target && *at != NULL; kept++) {
        at = &(*at)->next;
    }
    surplus = *at;
    *at = NULL;
    shelf->count = shelf->count < shelf->target ? shelf->count : shelf->target;
    return surplus;
}

void shelf_release(struct shelf *shelf)
{
    shelf->references--;
    if (shelf->references > 0) {
        return;
    }
    run_request_free(shelf->like);
    free(shelf->workspace);
    free(shelf);
}
