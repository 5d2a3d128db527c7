/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_in: the bodies of requests about snapshots. Pure; any thread.
 *
 * All functions: 0, or -1 BAD_JSON, UNKNOWN_FIELD, BAD_VALUE; nothing is left to be freed then.
 */
#ifndef KERND_API_SNAPSHOT_IN_H
#define KERND_API_SNAPSHOT_IN_H

#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/strv.h"

struct snapshot_in {
    char *name; /* NULL: none */
    struct strv labels;
};
void snapshot_in_done(struct snapshot_in *in);

/* {"name", "labels"}: may be empty. */
int snapshot_in_make(const char *body, size_t size, struct snapshot_in *ret_in, struct err *err);

/* {"snapshotId"}: to be freed. */
int snapshot_in_restore(const char *body, size_t size, char **ret_id, struct err *err);

#endif
