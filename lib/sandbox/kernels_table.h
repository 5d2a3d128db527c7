/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels_table: the kernels that live, or died since the server started. For lib/sandbox.
 */
#ifndef KERND_SANDBOX_KERNELS_TABLE_H
#define KERND_SANDBOX_KERNELS_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct warm;

struct kernels_table {
    pthread_mutex_t lock;
    pthread_cond_t gone;
    struct warm *first; /* one reference each */
    size_t count;
};

void kernels_table_init(struct kernels_table *table);
void kernels_table_done(struct kernels_table *table);

/* Takes a reference. -1 KERNEL_EXISTS, TOO_MANY_REQUESTS. */
int kernels_table_add(struct kernels_table *table, struct warm *warm, struct err *err);

/* One more reference, or NULL. */
struct warm *kernels_table_find(struct kernels_table *table, const char *session_id,
                                const char *id);

/* Kernels of a session that are not dead. */
size_t kernels_table_count(struct kernels_table *table, const char *session_id);

/* References of all kernels of a session (NULL: of all), a fresh array. */
struct warm **kernels_table_collect(struct kernels_table *table, const char *session_id,
                                    size_t *ret_count);

/* Takes it out and gives its reference back; nothing if it is not there. */
void kernels_table_remove(struct kernels_table *table, struct warm *warm);

/* Closes all of a session (NULL: all) and waits until they are gone, or the deadline. */
void kernels_table_close(struct kernels_table *table, const char *session_id, int64_t deadline);

#endif
