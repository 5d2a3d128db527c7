/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boxes_internal: the factory's fields, for the files of this room only.
 */
#ifndef KERND_BOX_BOXES_INTERNAL_H
#define KERND_BOX_BOXES_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/pool.h"
#include "lib/box/boxes.h"
#include "lib/box/cgroup.h"
#include "lib/box/engine.h"
#include "lib/box/seccomp.h"

#define BOXES_ROOTS 6

/* Tells one file from another and from what it was before (stat(2)); all 0: none. */
struct boxes_identity {
    uint64_t device;
    uint64_t inode;
    int64_t size;
    int64_t changed_ns;
};

/* One of the engines: constant but for `cap` and what the lock of struct boxes guards. */
struct boxes_engine {
    const struct engine *kind;
    bool allowed;   /* by the configuration */
    char *launcher; /* absolute path, NULL: not found */
    atomic_int cap; /* enum engine_cap: the last that its launcher told of */
    /* Locked: */
    char version[BOXES_VERSION_SIZE];
    bool version_known;
    bool ready;
    int64_t probed_ns;
    struct boxes_identity identity; /* of the launcher that was probed */
    struct err failure;
};

struct boxes {
    struct boxes_engine engines[BOXES_ENGINES_MAX];
    struct boxes_engine *standard; /* of calls that name none */
    struct pool *starters;         /* threads that may start processes for others that may not */
    char *image;                   /* for calls that name none */
    char *engine_dir;              /* of engines with a state of their own */
    char *cache_dir;               /* where they keep images */
    char *boxes_dir;
    char *library_dir;
    char *etc_dir;
    char *probe_dir; /* an empty workspace for probes */
    char *resolv_conf;
    struct engine_root root[BOXES_ROOTS];
    struct seccomp seccomp;    /* once prepared */
    pthread_mutex_t preparing; /* guards `prepared` and what is being prepared */
    bool prepared;
    int boxes_fd;
    uint64_t files_max; /* of a workspace */
    bool tasks_limited; /* RLIMIT_NPROC counts per user namespace here */
    bool confined;      /* threads that start boxes have a filter */
    struct cgroup_tree cgroups;
    atomic_bool moves_told; /* boxes can't be born in their cgroups here */
    atomic_bool landlocked; /* the last box that started has that wall */
    atomic_size_t running;
    pthread_mutex_t lock; /* see struct boxes_engine */
};

/*
 * Finds what the configuration allows. 0, or -1: BAD_VALUE, ENGINE_UNAVAILABLE (a given program is
 * none).
 */
int boxes_engines_find(const struct boxes_config *config, struct boxes *boxes, struct err *err);
void boxes_engines_done(struct boxes *boxes);

/* Locked: what the engine's program says of its version. */
const char *boxes_engines_version(struct boxes *boxes, struct boxes_engine *engine);

/* The engine of this name, NULL: the standard one. NULL and NOT_SUPPORTED_HERE: not configured. */
struct boxes_engine *boxes_engines_pick(struct boxes *boxes, const char *name, struct err *err);

/* 0, or -1 ENGINE_UNAVAILABLE when there is no launcher at all. */
int boxes_engines_check(const struct boxes_engine *engine, struct err *err);

/* Locked: can this engine start a box, as far as the last probe told? Probes again when due. */
bool boxes_ready_locked(struct boxes *boxes, struct boxes_engine *engine);

/*
 * What every box of kernd's own engines needs, and a server that has started none does not: the
 * boxes' /etc and the filter programs, some 5 ms of work. Does it once; the next caller after a
 * failure tries again. From threads that may start boxes. 0, or -1: IO, INTERNAL.
 */
int boxes_prepare(struct boxes *boxes, struct err *err);

/*
 * Kills launchers of a predecessor that live on, and removes all per-box directories. The caller
 * holds the lock of the runtime directory.
 */
void boxes_sweep(int boxes_fd, const char *boxes_dir);

#endif
