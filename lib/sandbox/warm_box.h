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

/* Politely ends the interpreter; nothing if there is none. */
void warm_box_close(struct warm *warm);

/* Does an idle interpreter still live? */
bool warm_box_lives(struct warm *warm);

/*
 * Ends a dead interpreter and writes down why it died, by evidence. stop: what the last round of
 * its box ended with, BOX_STOP_EXITED for one that died idle. *ret_outcome may be NULL.
 */
void warm_box_bury(struct warm *warm, enum box_stop stop, struct box_outcome *ret_outcome);

/* "exit status 3", "signal 11 (SEGV)", ... from an outcome. Pure. */
void warm_box_reason(const struct box_outcome *outcome, enum box_stop stop, char *out, size_t size);

/* The row: made, brought up to date, deleted. */
int warm_box_insert(struct warm *warm, struct err *err);
void warm_box_record(struct warm *warm);
void warm_box_forget(struct warm *warm);

#endif
