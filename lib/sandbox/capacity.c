/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity: defaults of what may run at the same time.
 * Owns: nothing.
 * Threads: any.
 * May include: all of lib.
 */
#include "lib/sandbox/capacity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/budget.h"
#include "lib/base/cgroupdir.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/pool.h"
#include "lib/base/text.h"
#include "lib/sandbox/sandbox_internal.h"

#define QUEUE 256
#define WORKERS_MIN 16
#define WORKERS_MAX 64
#define WORKERS_PER_CORE 8
#define MIB (UINT64_C(1) << 20)
#define MB_PER_WORKER 256
/* What is left of the memory is the host's own, and kernd's. */
#define MEMORY_PERCENT 80
/* Of workers and queue, an eighth and a quarter are never one caller's. */
#define WORKERS_KEPT 8
#define QUEUE_KEPT 4
#define CGROUPS "/sys/fs/cgroup"
/* cgroup v1, as it is seen from within a container. */
#define LIMIT_V1 CGROUPS "/memory/memory.limit_in_bytes"
#define LIMIT_TEXT_MAX 64

static size_t cores(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count > 0 ? (size_t)count : 1;
}

static uint64_t physical_mb(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_size = sysconf(_SC_PAGESIZE);

    return pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size / MIB : 1024;
}

/* A file with a number of bytes; "max" and what can't be read bound nothing. */
static uint64_t lower_mb(uint64_t memory_mb, const char *path)
{
    size_t size = 0;
    uint64_t bytes = 0;
    CLEANUP_FREE char *text = fd_read_file(path, LIMIT_TEXT_MAX, &size);

    if (text == NULL) {
        return memory_mb;
    }
    text[strcspn(text, "\n")] = '\0';
    return text_parse_u64(text, &bytes) == 0 && bytes / MIB < memory_mb ? bytes / MIB : memory_mb;
}

uint64_t capacity_host_memory_mb(void)
{
    uint64_t memory_mb = lower_mb(physical_mb(), LIMIT_V1);
    struct cgroupdir own;

    cgroupdir_find(&own);
    /* Each cgroup on the way up bounds those below it. */
    while (own.path != NULL && text_starts_with(own.path, CGROUPS)) {
        CLEANUP_FREE char *path = alloc_printf("%s/memory.max", own.path);
        char *last = strrchr(own.path, '/');

        memory_mb = lower_mb(memory_mb, path);
        *last = '\0';
    }
    cgroupdir_done(&own);
    return memory_mb;
}

/*
 * A run thread mostly waits for its box, so there are more of them than cores; each may stand for a
 * box with memory of its own, so memory bounds them too.
 */
static uint64_t choose_workers(uint64_t memory_mb)
{
    const uint64_t by_memory = memory_mb / MB_PER_WORKER;
    uint64_t workers = cores() * WORKERS_PER_CORE;

    workers = workers < WORKERS_MIN ? WORKERS_MIN : workers;
    workers = workers > WORKERS_MAX ? WORKERS_MAX : workers;
    if (workers > by_memory) {
        workers = by_memory > 1 ? by_memory : 2;
    }
    return workers;
}

/* All but a part that is kept, at least one where there are two. */
static uint64_t all_but(uint64_t count, uint64_t part)
{
    const uint64_t kept = (count + part - 1) / part;

    return count > kept ? count - kept : count;
}

static void choose(uint64_t *value, uint64_t usual, uint64_t bound)
{
    *value = *value > 0 ? *value : usual;
    *value = *value > bound ? bound : *value;
}

void capacity_choose(struct capacity *capacity)
{
    const uint64_t host_mb = capacity_host_memory_mb();
    const uint64_t usual_mb = host_mb * MEMORY_PERCENT / 100;

    if (capacity->memory_mb == 0) {
        capacity->memory_mb = usual_mb > 0 ? usual_mb : 1;
    }
    choose(&capacity->workers, choose_workers(host_mb), UINT64_MAX);
    choose(&capacity->workers_per_caller, all_but(capacity->workers, WORKERS_KEPT),
           capacity->workers);
    choose(&capacity->workers_per_session, all_but(capacity->workers_per_caller, WORKERS_KEPT),
           capacity->workers_per_caller);
    choose(&capacity->queue, QUEUE, UINT64_MAX);
    choose(&capacity->queue_per_caller,
           capacity->queue < UINT64_C(2) * QUEUE_KEPT ? capacity->queue
                                                      : all_but(capacity->queue, QUEUE_KEPT),
           capacity->queue);
}

void capacity_rules(const struct capacity *capacity, struct pool_rules *ret_rules)
{
    const size_t share = cores() / 2;

    *ret_rules = (struct pool_rules){
        .per_caller = capacity->workers_per_caller,
        .per_group = capacity->workers_per_session,
        .prompt = share > 0 ? share : 1,
        .unsettled = cores(),
        .queue_per_caller = capacity->queue_per_caller,
    };
}

uint64_t capacity_need(const struct limits *limits)
{
    return limits->memory_mb * MIB;
}

/* FNV-1a. Two sessions that meet in one group would take turns as one, no more. */
uint64_t capacity_group(const char *session_id)
{
    uint64_t hash = session_id[0] == '\0' ? 0 : UINT64_C(14695981039346656037);

    for (; *session_id != '\0'; session_id++) {
        hash = (hash ^ (unsigned char)*session_id) * UINT64_C(1099511628211);
    }
    return hash;
}

void capacity_give(struct sandbox *sandbox, struct budget_claim *claim, uint64_t bytes)
{
    if (budget_lower(sandbox->budget, claim, bytes)) {
        pool_wake(sandbox->pool);
        pool_wake(sandbox->background);
    }
}
