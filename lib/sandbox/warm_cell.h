/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_cell: one cell in a kernel. For lib/sandbox; the owner of the kernel, a run thread.
 */
#ifndef KERND_SANDBOX_WARM_CELL_H
#define KERND_SANDBOX_WARM_CELL_H

#include "lib/base/err.h"

struct execution;
struct warm;

/*
 * Runs the execution's cell and fills its result. 0, or -1 KERNEL_DEAD when the kernel had died
 * before the cell began, or another reason why it did not run.
 */
int warm_cell_run(struct warm *warm, struct execution *execution, struct err *err);

#endif
