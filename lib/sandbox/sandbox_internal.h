/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_internal: the body of a sandbox, for lib/sandbox alone.
 *
 * Immutable after sandbox_open but for what is under the lock.
 */
#ifndef KERND_SANDBOX_SANDBOX_INTERNAL_H
#define KERND_SANDBOX_SANDBOX_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/pool.h"
#include "lib/box/boxes.h"
#include "lib/sandbox/sandbox.h"

#define SANDBOX_VERSION_SIZE 64

struct sandbox {
    char *workspaces_path; /* parent of all owned workspaces */
    int workspaces;        /* the same, open as a directory */
    struct boxes *boxes;
    struct pool *pool; /* the run lane */
    struct limits maxima;
    struct limits defaults;
    atomic_ullong executions_total;

    pthread_mutex_t lock; /* the live list, closing, language versions */
    pthread_cond_t idle;  /* the live list became empty */
    struct execution *live;
    bool closing;
    bool language_known[RUN_LANGUAGE_MAX];
    char language_version[RUN_LANGUAGE_MAX][SANDBOX_VERSION_SIZE];
};

#endif
