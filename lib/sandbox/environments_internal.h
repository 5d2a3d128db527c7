/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environments_internal: the store of environments, for lib/sandbox/environments*.c alone.
 */
#ifndef KERND_SANDBOX_ENVIRONMENTS_INTERNAL_H
#define KERND_SANDBOX_ENVIRONMENTS_INTERNAL_H

#include <pthread.h>

#include "lib/sandbox/environments.h"
#include "lib/store/rows_environment.h"

/* Names beside the directory of an environment: what is being built, and what the build wrote. */
#define ENVIRONMENTS_PART ".part"
#define ENVIRONMENTS_LOG ".log"

/* One environment that running calls use. */
struct environment_use {
    struct environments *environments;
    char id[ENVIRONMENT_SPEC_ID_SIZE];
    size_t count;
    struct environment_use *next;
};

struct environments {
    struct sandbox *sandbox;
    char *path;
    int directory;
    /* A row and its files come and go together: held while one of them does. Also the uses. */
    pthread_mutex_t lock;
    struct environment_use *uses;
};

int environments_view_from_row(const struct rows_environment *row,
                               struct environments_view *ret_view, struct err *err);

#endif
