/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call: runs one execution on a run thread, from workspace to result.
 */
#ifndef KERND_SANDBOX_CALL_H
#define KERND_SANDBOX_CALL_H

struct execution;
struct sandbox;

/*
 * Blocks until the execution is done and its waiters were told. Run threads only: the box dies with
 * the thread that launched it.
 */
void call_run(struct sandbox *sandbox, struct execution *execution);

#endif
