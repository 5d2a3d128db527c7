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

struct boxes {
    const struct engine *engine;
    struct pool *starters; /* threads that may start processes for others that may not */
    char *launcher;        /* absolute path, NULL: not found */
    char *boxes_dir;
    char *library_dir;
    char *etc_dir;
    char *probe_dir; /* an empty workspace for probes */
    char *resolv_conf;
    struct engine_root root[BOXES_ROOTS];
    struct seccomp seccomp;
    int boxes_fd;
    uint64_t files_max; /* of a workspace */
    bool tasks_limited; /* RLIMIT_NPROC counts per user namespace here */
    struct cgroup_tree cgroups;
    atomic_bool moves_told; /* boxes can't be born in their cgroups here */
    atomic_bool landlocked; /* the last box that started has that wall */
    atomic_size_t running;
    pthread_mutex_t lock; /* guards what follows */
    char *version;        /* NULL: not asked yet */
    bool ready;
    int64_t probed_ns;
    struct err failure;
};

/* 0, or -1 ENGINE_UNAVAILABLE when there is no launcher at all. */
int boxes_check_launcher(const struct boxes *boxes, struct err *err);

/*
 * Kills launchers of a predecessor that live on, and removes all per-box directories. The caller
 * holds the lock of the runtime directory.
 */
void boxes_sweep(int boxes_fd, const char *boxes_dir, const char *launcher_name);

#endif
