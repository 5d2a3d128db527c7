/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make the threads of a sandbox, in the order that decides what they may do.
 * Owns: nothing; they are the sandbox's.
 * Threads: the one that opens the sandbox.
 * May include: lib/base, lib/box, lib/sandbox.
 */
#include "lib/sandbox/lanes.h"

#include <unistd.h>

#include "lib/base/alarm.h"
#include "lib/base/log.h"
#include "lib/base/pool.h"
#include "lib/box/boxes.h"
#include "lib/box/confine.h"
#include "lib/sandbox/janitor.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/spares.h"

#define DEFAULT_QUEUE_MAX 256
#define THREADS_MIN 16
#define THREADS_MAX 64
#define THREADS_PER_CORE 8
#define BYTES_PER_BOX (UINT64_C(256) << 20)
/* Detached programs run until their session ends, each on a thread of its own. */
#define BACKGROUND_MAX 16
/* Copies and archives are bound by one disk and one core each. */
#define FILE_THREADS 2

/*
 * A run thread mostly waits for its box, so there are more of them than cores; each may stand for a
 * box with memory of its own, so memory bounds them too.
 */
static size_t default_threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_size = sysconf(_SC_PAGESIZE);
    size_t threads = cores > 0 ? (size_t)cores * THREADS_PER_CORE : THREADS_MIN;
    uint64_t by_memory = THREADS_MIN;

    if (pages > 0 && page_size > 0) {
        by_memory = (uint64_t)pages * (uint64_t)page_size / BYTES_PER_BOX;
    }
    threads = threads < THREADS_MIN ? THREADS_MIN : threads;
    threads = threads > THREADS_MAX ? THREADS_MAX : threads;
    if (threads > by_memory) {
        threads = by_memory > 1 ? (size_t)by_memory : 2;
    }
    return threads;
}

static size_t queue_max(const struct sandbox_config *config)
{
    return config->queue_max > 0 ? config->queue_max : DEFAULT_QUEUE_MAX;
}

int lanes_open(struct sandbox *sandbox, const struct sandbox_config *config, struct err *err)
{
    size_t threads = config->run_threads > 0 ? config->run_threads : default_threads();
    struct err reason = ERR_INIT;
    const struct boxes_config boxes = { .runtime_dir = config->runtime_dir,
                                        .library_dir = config->library_dir,
                                        .engine = config->engine,
                                        .launcher = config->launcher,
                                        .files_max = config->workspace_files };

    if (boxes_open(&boxes, &sandbox->boxes, err) < 0 ||
        (sandbox->pool = pool_new("run", threads, queue_max(config), err)) == NULL ||
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

int lanes_open_confined(struct sandbox *sandbox, const struct sandbox_config *config,
                        struct err *err)
{
    sandbox->files = pool_new("files", FILE_THREADS, queue_max(config), err);
    sandbox->alarm = sandbox->files == NULL ? NULL : alarm_new(err);
    sandbox->janitor = sandbox->alarm == NULL ? NULL : janitor_new(sandbox, err);
    return sandbox->janitor == NULL ? -1 : 0;
}
