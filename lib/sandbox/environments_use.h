/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environments_use: what sessions and calls need of an environment. For lib/sandbox.
 */
#ifndef KERND_SANDBOX_ENVIRONMENTS_USE_H
#define KERND_SANDBOX_ENVIRONMENTS_USE_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/strv.h"

struct environment_use;
struct environments;
struct run_request;
struct sandbox;

/*
 * Is the environment named at *environment (an id or a name; NULL: none) there and ready? Then
 * *environment becomes its id, and its modules come first in preload. 0, or -1 with the pointer
 * "/environment": ENVIRONMENT_NOT_FOUND, CONFLICT (building, failed, made with another version of
 * an interpreter), NOT_SUPPORTED_HERE (of another engine).
 */
int environments_use_resolve(struct sandbox *sandbox, char **environment, struct strv *preload,
                             struct err *err);

/* The same for a request without a session: the environment stays until the request is freed. */
int environments_use_begin(struct sandbox *sandbox, struct run_request *request, struct err *err);
void environments_use_end(struct environment_use *use); /* NULL is fine */

/* Does any such request use it? With the lock of environments held. */
bool environments_use_holds(const struct environments *environments, const char *id);

#endif
