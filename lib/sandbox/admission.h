/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admission: from a checked request to an execution in the queue. For lib/sandbox alone.
 */
#ifndef KERND_SANDBOX_ADMISSION_H
#define KERND_SANDBOX_ADMISSION_H

#include "lib/sandbox/execution.h"

struct sandbox;
struct warm;

/*
 * Takes the request over. One reference for the caller, or NULL with QUEUE_FULL, SHUTTING_DOWN,
 * EXECUTION_EXISTS, TOO_MANY_REQUESTS (background programs), IO. See sandbox_submit.
 */
struct execution *admission_submit(struct sandbox *sandbox, struct run_request *request,
                                   struct err *err);

/* As admission_submit, for a cell of a kernel. Also KERNEL_DEAD. */
struct execution *admission_submit_cell(struct sandbox *sandbox, struct warm *warm,
                                        struct run_request *request, struct err *err);

/* Ends one that will never run, and is in no queue any more. */
void admission_refuse(struct execution *execution, const struct err *failure);

/*
 * A cancelled one that still waits in the queue ends now, with the fault `cancelled`; its waiters
 * are called on this thread. Nothing otherwise. The caller holds a reference, and no lock.
 */
void admission_withdraw(struct execution *execution);

#endif
