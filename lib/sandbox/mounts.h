/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts: host directories that callers name for their boxes. For lib/sandbox; any thread.
 */
#ifndef KERND_SANDBOX_MOUNTS_H
#define KERND_SANDBOX_MOUNTS_H

#include <stddef.h>

#include "lib/base/err.h"
#include "lib/sandbox/run.h"

struct hostdir_rules;

/*
 * Replaces sources by what they resolve to and targets by their clean form. 0, or -1 BAD_VALUE,
 * MOUNT_REFUSED with the pointer "/mounts/<source>": see hostdir.h; also for a target that is the
 * same as another's or lies inside it.
 */
int mounts_resolve(const struct hostdir_rules *rules, struct run_mount *mounts, size_t count,
                   struct err *err);

#endif
