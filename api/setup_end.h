/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup_end: how a setup step ended, as its caller is told. Any thread.
 */
#ifndef KERND_API_SETUP_END_H
#define KERND_API_SETUP_END_H

#include "api/api.h"
#include "api/wait.h"
#include "lib/base/err.h"
#include "lib/sandbox/execution.h"

/*
 * 0 when the setup did what it should; -1 SETUP_FAILED or, for the modules of an environment,
 * PRELOAD_FAILED, with its last words; or the server's fault.
 */
int setup_end_judge(const struct execution *setup, enum wait_end end, struct err *err);

/* Answers with the problem and the id of the execution; finishes the call. */
void setup_end_fail(struct api_call *call, const struct execution *setup, const struct err *err);

#endif
