/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_exit: the two ways in which a kernel's interpreter is made to go. For lib/sandbox; any
 * thread. What runs and what waits ends as cancelled; both return at once.
 */
#ifndef KERND_SANDBOX_WARM_EXIT_H
#define KERND_SANDBOX_WARM_EXIT_H

#include "lib/base/err.h"

struct kernels_waiter;
struct warm;

/* As kernels_restart. */
int warm_exit_restart(struct warm *warm, struct kernels_waiter *waiter, struct err *err);

/* Ends the kernel for good; it leaves the table at its end. */
void warm_exit_close(struct warm *warm);

#endif
