/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_out: snapshots as JSON. Pure; any thread.
 */
#ifndef KERND_API_SNAPSHOT_OUT_H
#define KERND_API_SNAPSHOT_OUT_H

#include "api/json_out.h"
#include "lib/sandbox/snapshots.h"

/* One object. */
void snapshot_out_write(struct json_out *json, const struct snapshots_view *view);

/* {"items": [...], "nextCursor": ...} */
void snapshot_out_page(struct json_out *json, const struct snapshots_page *page);

#endif
