/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vetting: what a request may not ask for, told before anything is queued. For lib/sandbox; any
 * thread but the event one.
 */
#ifndef KERND_SANDBOX_VETTING_H
#define KERND_SANDBOX_VETTING_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/sandbox/run.h"

struct box;
struct sandbox;

/*
 * Checks limits, paths, mounts and the workspace of a request, and brings them into their resolved
 * form. 0, or -1 with a pointer: LIMIT_EXCEEDS_MAXIMUM, LIMITS_NOT_ENFORCED, BAD_PATH, BAD_VALUE,
 * MOUNT_REFUSED.
 */
int vetting_request(struct sandbox *sandbox, struct run_request *request, struct err *err);

/* 0, or -1 LIMITS_NOT_ENFORCED when required and the host can't. */
int vetting_require_limits(struct sandbox *sandbox, const struct limits *limits, struct err *err);

/* The same of the box that the request got: 0, or -1 LIMITS_NOT_ENFORCED. */
int vetting_box(const struct box *box, const struct run_request *request, struct err *err);

#endif
