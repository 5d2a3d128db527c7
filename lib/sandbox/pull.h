/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull: an execution without a box: kern fetches an image from its registry.
 */
#ifndef KERND_SANDBOX_PULL_H
#define KERND_SANDBOX_PULL_H

#include "lib/base/err.h"

struct execution;
struct run_request;
struct sandbox;

/* May images be fetched here? 0, or -1 NOT_SUPPORTED_HERE with what to do,
 * LIMIT_EXCEEDS_MAXIMUM. Any thread. */
int pull_check(struct sandbox *sandbox, const struct run_request *request, struct err *err);

/* As call_run, for requests of kind RUN_PULL: on a thread that may start processes. */
void pull_run(struct sandbox *sandbox, struct execution *execution);

#endif
