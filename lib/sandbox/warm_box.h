/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_box: the interpreter of a kernel and its row. For the kernel's owner (warm.h), a run thread
 * where it opens one.
 */
#ifndef KERND_SANDBOX_WARM_BOX_H
#define KERND_SANDBOX_WARM_BOX_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/box/box.h"

struct warm;

/* Starts a box and the driver in it. 0, or -1 and why. */
int warm_box_open(struct warm *warm, struct err *err);

/* Ends the interpreter; nothing if there is none. politely: its exit handlers run. */
void warm_box_close(struct warm *warm, bool politely);

/* How an interpreter came to its end, but for what the outcome of its box says. */
struct warm_death {
    enum box_stop stop; /* what the last round of its box ended with */
    bool at_once;       /* DEADLINE, CANCELLED: the cell's kill was wanted, without an interrupt */
    bool nonsense;      /* PEER_LOST: the driver broke the protocol */
    bool idle;          /* no cell ran */
};

/* Ends a dead interpreter and writes down why it died, by evidence. *ret_outcome may be NULL. */
void warm_box_bury(struct warm *warm, const struct warm_death *death,
                   struct box_outcome *ret_outcome);

#define WARM_BOX_REASON_SIZE 200

/* "exit status 3", "signal 11 (SEGV)", "oom: ..." Pure. */
void warm_box_reason(const struct box_outcome *outcome, const struct warm_death *death,
                     char out[static WARM_BOX_REASON_SIZE]);

/* The row: made, brought up to date, deleted. */
int warm_box_insert(struct warm *warm, struct err *err);
void warm_box_record(struct warm *warm);
void warm_box_forget(struct warm *warm);

#endif
