/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes: the threads that do the sandbox's work: those that start boxes first, then the others,
 * which may not start anything (lib/box/confine.h). sandbox_close ends all of them.
 */
#ifndef KERND_SANDBOX_LANES_H
#define KERND_SANDBOX_LANES_H

#include "lib/base/err.h"
#include "lib/sandbox/sandbox.h"

/*
 * Opens the boxes, the lanes of executions and that of spares, which get no job before the sandbox
 * is open; if config says so, with the filter of threads that start boxes, and then confines the
 * calling thread, and with it all it makes later, as one that does not. 0, or -1 with the errors of
 * boxes_open, IO.
 */
int lanes_open(struct sandbox *sandbox, const struct sandbox_config *config, struct err *err);

/* The rest: files, alarm, reserve, janitor. 0 or -1 IO. */
int lanes_open_confined(struct sandbox *sandbox, struct err *err);

#endif
