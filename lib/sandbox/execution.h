/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution: one run from acceptance to result. Reference-counted; any thread.
 */
#ifndef KERND_SANDBOX_EXECUTION_H
#define KERND_SANDBOX_EXECUTION_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/cancel.h"
#include "lib/base/err.h"
#include "lib/sandbox/run.h"

struct execution;

enum execution_state { EXECUTION_QUEUED, EXECUTION_RUNNING, EXECUTION_DONE };

/* Embedded by whoever waits; done is called once, on a run thread or by execution_wait itself. */
struct execution_waiter {
    void (*done)(struct execution_waiter *waiter);
    struct execution_waiter *next; /* the execution's own */
};

struct execution *execution_ref(struct execution *execution);
void execution_unref(struct execution *execution);

const char *execution_id(const struct execution *execution);
/* NULL for a one-shot. */
const char *execution_session_id(const struct execution *execution);
/* NULL for what is not a cell. */
const char *execution_kernel_id(const struct execution *execution);
/* Where its time went; complete once it is done. Borrowed. */
const struct steps *execution_steps(const struct execution *execution);
enum execution_state execution_state(struct execution *execution);
const struct run_request *execution_request(const struct execution *execution);

/*
 * Only once done: the result, or NULL with err when the server could not do what was asked
 * (BOX_START_FAILED, ENGINE_UNAVAILABLE, IO ...). Lives as long as the reference.
 */
const struct run_result *execution_result(const struct execution *execution, struct err *err);

/* Registers; calls back at once on this thread if already done. */
void execution_wait(struct execution *execution, struct execution_waiter *waiter);

/* Withdraws a waiter that was not called yet: true, it will not be. False: it was, or is being. */
bool execution_forget(struct execution *execution, struct execution_waiter *waiter);

/* Jobs before it in the queue; -1: not queued any more. */
long execution_position(struct execution *execution);

/*
 * Sends a signal to the program, or to all processes of its box (as a terminal's Ctrl-C reaches all
 * that runs in front). 0, or -1 EXECUTION_DONE, CONFLICT (not started yet).
 */
int execution_signal(struct execution *execution, int signal_number, bool all, struct err *err);

/*
 * More bytes for the standard input of one that was submitted with `interactive`; end closes it
 * behind them. Copies. 0, or -1 EXECUTION_DONE, CONFLICT (not interactive, or closed),
 * TOO_MANY_REQUESTS (a megabyte is waiting already).
 */
int execution_write_stdin(struct execution *execution, const void *data, size_t size, bool end,
                          struct err *err);

/* Ends it early; a queued one never starts. Idempotent. The outcome is a fault `cancelled`. */
void execution_cancel(struct execution *execution, enum cancel_reason reason);

#endif
