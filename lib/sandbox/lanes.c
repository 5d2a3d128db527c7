/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make the threads of a sandbox, in the order that decides what they may do.
 * Owns: nothing; they are the sandbox's.
 * Threads: the one that opens the sandbox.
 * May include: lib/base, lib/box, lib/sandbox.
 */
#include "lib/sandbox/lanes.h"

#include "lib/base/alarm.h"
#include "lib/base/log.h"
#include "lib/base/pool.h"
#include "lib/box/boxes.h"
#include "lib/box/confine.h"
#include "lib/sandbox/janitor.h"
#include "lib/sandbox/reserve.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/spares.h"
#include "lib/sandbox/templates.h"

/* Detached programs run until their session ends, each on a thread of its own. */
#define BACKGROUND_MAX 16
/* Copies and archives are bound by one disk and one core each. */
#define FILE_THREADS 2

/* Once that is there which gives way to what waits for memory. */
static void set_rules(struct sandbox *sandbox)
{
    struct pool_rules rules;
    struct pool_rules background = { .budget = sandbox->budget };

    capacity_rules(&sandbox->capacity, &rules);
    rules.budget = sandbox->budget;
    rules.short_of = background.short_of = reserve_ask;
    rules.context = background.context = sandbox->reserve;
    pool_set_rules(sandbox->pool, &rules);
    pool_set_rules(sandbox->background, &background);
}

int lanes_open(struct sandbox *sandbox, const struct sandbox_config *config, struct err *err)
{
    const struct capacity *capacity = &sandbox->capacity;
    struct err reason = ERR_INIT;
    const struct boxes_config boxes = { .runtime_dir = config->runtime_dir,
                                        .library_dir = config->library_dir,
                                        .engine = config->engine,
                                        .launcher = config->launcher,
                                        .kern = config->kern,
                                        .image = config->image,
                                        .image_cache = config->image_cache,
                                        .files_max = config->workspace_files,
                                        .confine = config->confine };

    if (boxes_open(&boxes, &sandbox->boxes, err) < 0 ||
        (sandbox->templates = templates_new(sandbox, config->templates, err)) == NULL) {
        return -1;
    }
    boxes_confine_rest(sandbox->boxes);
    if ((sandbox->pool = pool_new("run", capacity->workers, capacity->queue, err)) == NULL ||
        (sandbox->background = pool_new("background", BACKGROUND_MAX, 0, err)) == NULL ||
        (sandbox->spares = spares_new(sandbox, config->spares_max, err)) == NULL) {
        return -1;
    }
    /* A second wall: without it kernd works, and says so. */
    if (config->confine && confine_thread(&reason) < 0) {
        log_line(LOG_WARNING, "not_confined", "why", reason.msg, NULL);
    }
    return 0;
}

int lanes_open_confined(struct sandbox *sandbox, struct err *err)
{
    sandbox->files = pool_new("files", FILE_THREADS, sandbox->capacity.queue, err);
    sandbox->alarm = sandbox->files == NULL ? NULL : alarm_new(err);
    sandbox->reserve = sandbox->alarm == NULL ? NULL : reserve_new(sandbox, err);
    if (sandbox->reserve == NULL) {
        return -1;
    }
    set_rules(sandbox);
    sandbox->janitor = janitor_new(sandbox, err);
    return sandbox->janitor == NULL ? -1 : 0;
}
