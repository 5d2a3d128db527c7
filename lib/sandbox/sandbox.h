/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox: the façade of the library: everything the API offers, as plain C calls.
 *
 * Quick calls (create, look up, cancel) return at once and are for any thread but the event one.
 * Work that starts boxes becomes an execution: submitted here, run by the sandbox's own run lane,
 * told through callbacks when done. What happens to the guest is data in a run_result.
 */
#ifndef KERND_SANDBOX_SANDBOX_H
#define KERND_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/box/boxes.h"
#include "lib/box/remedy.h"
#include "lib/sandbox/capacity.h"
#include "lib/sandbox/execution.h"
#include "lib/sandbox/limits.h"
#include "lib/sandbox/run.h"

struct pool_share;
struct sandbox;

/*
 * Writes the texts that are kept of an ended execution: its end event and its document (events.h).
 * Called once per execution, on the thread that ended it, before its waiters.
 */
typedef void sandbox_render(const struct execution *execution, struct buf *event_text,
                            struct buf *document);

struct sandbox_config {
    sandbox_render *render;             /* NULL: nothing is kept but the events themselves */
    const char *state_dir;              /* private; workspaces/ and the database live there */
    const char *runtime_dir;            /* private; sockets and per-box directories */
    const char *library_dir;            /* kernd-init and the drivers */
    const char *home;                   /* the user's home, refused as a workspace; NULL: none */
    const char *const *workspace_roots; /* NULL, or only below these may a caller's workspace be */
    const char *engine;                 /* "auto", "bubblewrap", "kern" */
    const char *launcher;               /* see struct boxes_config, as the three below */
    const char *kern;
    const char *image;
    const char *image_cache;
    bool image_pull;              /* callers may have images fetched from registries */
    struct capacity capacity;     /* zero fields: see capacity.h */
    size_t spares_max;            /* boxes kept ready at most; 0: none */
    bool templates;               /* fork boxes of warm interpreters where that can be */
    uint64_t snapshots_max_bytes; /* of all archives; 0: see snapshots.h */
    double snapshots_max_age_s;   /* of those without a name; 0: see snapshots.h */
    uint64_t workspace_files;     /* files and directories of a workspace; 0: see boxes.h */
    bool
        confine; /* takes from the caller's thread, and all it makes later, what starts processes */
    struct limits maxima;   /* zero fields: built-in maxima */
    struct limits defaults; /* zero fields: built-in defaults */
};

struct sandbox_stats {
    size_t run_threads;
    size_t running;
    size_t queued;
    size_t queue_max;
    size_t callers;     /* whose executions run or wait */
    int64_t service_ns; /* how long executions took lately; 0: none ended yet */
    uint64_t memory_mb; /* claimed by boxes */
    size_t boxes;
    size_t spares; /* boxes started ahead and waiting */
    uint64_t spare_hits;
    uint64_t spare_misses;
    bool templates_enabled;
    size_t templates; /* that take orders */
    uint64_t forks;   /* boxes made of them */
    char templates_why[160];
    size_t records_queued;    /* writes to the store under way */
    uint64_t records_dropped; /* given up because the disk stayed full */
    uint64_t executions_total;
};

int sandbox_open(const struct sandbox_config *config, struct sandbox **ret_sandbox,
                 struct err *err);

/* No new work is taken; waits for running executions until the deadline, then cancels the rest and
 * waits for them too (bounded by the stop ladder). */
void sandbox_drain(struct sandbox *sandbox, int64_t deadline);
void sandbox_close(struct sandbox *sandbox);

/*
 * Can work be done here: engine, state directory writable, disk left. 0, or -1 with the first
 * reason and its remedy.
 */
int sandbox_ready(struct sandbox *sandbox, struct err *err);

/*
 * Is there nothing that would be lost by ending now: no execution that is queued or runs (detached
 * ones, setups and builds of environments among them), no kernel that lives, no copy or archive
 * under way? Spares don't count.
 */
bool sandbox_idle(struct sandbox *sandbox);

const struct capacity *sandbox_capacity(const struct sandbox *sandbox);
const struct limits *sandbox_maxima(const struct sandbox *sandbox);
const struct limits *sandbox_defaults(const struct sandbox *sandbox);
void sandbox_stats(struct sandbox *sandbox, struct sandbox_stats *ret_stats);
/* What one caller has under way of what it may. */
void sandbox_stats_share(struct sandbox *sandbox, uint64_t caller, struct pool_share *ret_share);
/* Where the time of all calls went, for any thread; the server adds its own part. */
struct steps_totals *sandbox_steps(struct sandbox *sandbox);
/* As images_list and images_load (lib/box/images.h). */
int sandbox_images_list(struct sandbox *sandbox, struct buf *out, struct err *err);
int sandbox_images_load(struct sandbox *sandbox, int file, struct strv *ret_names, struct err *err);

/* As boxes_engines: each is probed when that is due. */
size_t sandbox_engines(struct sandbox *sandbox,
                       struct boxes_engine_view ret_views[BOXES_ENGINES_MAX]);

/*
 * The engine of calls that name none, and another one that they may ask for (NULL: there is none).
 * Static texts.
 */
void sandbox_engine_names(struct sandbox *sandbox, const char **ret_own, const char **ret_other);

void sandbox_abilities(struct sandbox *sandbox, struct boxes_abilities *ret_abilities);

/* "3.11.2" for python, node, bash as found for this engine, NULL when there is none. */
const char *sandbox_language_version(struct sandbox *sandbox, enum run_language language);

/*
 * Takes the request over (also on failure) and queues it. A request with an id that is live or done
 * already: the same execution if fingerprint and caller are the same, else EXECUTION_EXISTS. The
 * execution, with one reference for the caller; NULL with QUEUE_FULL, SHUTTING_DOWN,
 * LIMIT_EXCEEDS_MAXIMUM, BAD_PATH, BAD_VALUE, ENGINE_UNAVAILABLE, WORKSPACE_FULL; for a cell as
 * kernels_submit.
 */
struct execution *sandbox_submit(struct sandbox *sandbox, struct run_request *request,
                                 struct err *err);

/* Appends the table of system calls in boxes, as seccomp_describe (lib/box/seccomp.h). 0 or -1. */
int sandbox_syscalls(struct buf *out);

struct pool_job;

/*
 * Runs a job on the lane of copies and archives, in its caller's turn: work on files that takes
 * longer than the quick lane has time for. 0, or -1 QUEUE_FULL, SHUTTING_DOWN (the job stays the
 * caller's).
 */
int sandbox_work(struct sandbox *sandbox, struct pool_job *job, struct err *err);

#endif
