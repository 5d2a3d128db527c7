/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_env: the environment of a box: the caller's variables and what kernd adds to them. Pure;
 * any thread.
 */
#ifndef KERND_SANDBOX_GUEST_ENV_H
#define KERND_SANDBOX_GUEST_ENV_H

#include <stdbool.h>

#include "lib/base/strv.h"

struct run_request;

/* Appends each variable of `from` ("K=V") that env does not set itself. */
void guest_env_inherit(struct strv *env, const struct strv *from);

/*
 * Appends to an empty env the variables of a request, and:
 *
 * deps: what setup installed is found. Its directory stands first in PYTHONPATH and NODE_PATH,
 * then that of the request's environment, then what the caller says there.
 *
 * A cap of processors: thread pools are made for so many, rounded up, unless the caller sets their
 * variables. Without, a library starts a thread for each processor of the host, and they get in
 * each other's way.
 */
void guest_env_make(const struct run_request *request, bool deps, struct strv *env);

/*
 * Can a running interpreter go from one environment to another by setting variables? True, and what
 * is to be set; false when one would have to be taken away, or is one that interpreters and
 * libraries read only when they start (PYTHON..., LD_..., LC_..., LANG, TZ, MALLOC_..., GLIBC_...).
 */
bool guest_env_change(const struct strv *from, const struct strv *to, struct strv *ret_change);

#endif
