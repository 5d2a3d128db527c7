/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_internal: the body of a kernel, for lib/cell alone.
 */
#ifndef KERND_CELL_KERNEL_INTERNAL_H
#define KERND_CELL_KERNEL_INTERNAL_H

#include <pthread.h>

#include "lib/cell/kernel.h"
#include "lib/cell/wire.h"

struct kernel {
    struct box *box;
    int driver; /* the box's */
    int always_readable;
    struct wire wire;
    char interpreter[WIRE_INTERPRETER_SIZE];
    bool alive;
    uint32_t number;    /* of the last cell begun */
    struct strv change; /* variables to set with the first cell */
    pthread_mutex_t lock;
    bool running; /* a cell; under the lock */
};

/* One whose driver is not there yet. NULL with err IO. */
struct kernel *kernel_open_make(struct box *box, struct err *err);

/* Frees it, and not its box. */
void kernel_release(struct kernel *kernel);

#endif
