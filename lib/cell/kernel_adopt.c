/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make a kernel of a driver that was booted ahead.
 * Owns: the box, from then on.
 * Threads: one at a time.
 * May include: box, base.
 */
#include <string.h>

#include "lib/cell/booted.h"
#include "lib/cell/kernel_internal.h"

int kernel_adopt(struct cell_booted *booted, const struct strv *change, struct kernel **ret_kernel,
                 struct err *err)
{
    struct kernel *kernel = kernel_open_make(booted->box, err);

    if (kernel == NULL) {
        return -1;
    }
    kernel->driver = booted->driver;
    kernel->wire = booted->wire;
    memcpy(kernel->interpreter, booted->interpreter, sizeof(kernel->interpreter));
    if (change != NULL) {
        strv_copy(&kernel->change, change);
    }
    kernel->alive = true;
    booted->wire = WIRE_INIT;
    cell_unboot(booted);
    *ret_kernel = kernel;
    return 0;
}
