/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts_out: what results and events tell alike: rich results and changed files. Pure; any thread.
 */
#ifndef KERND_API_PARTS_OUT_H
#define KERND_API_PARTS_OUT_H

#include <stdint.h>

#include "api/json_out.h"
#include "lib/sandbox/run.h"

/* Depth of JSON inside a rich result; deeper parts are left out. */
#define PARTS_OUT_DEPTH 128

/* All of these write members into an object that is open. */

/* data, isMain, truncated. */
void parts_out_bundle(struct json_out *json, const struct bundle *bundle);

/* path (and pathPercent when it is not UTF-8), size, change. */
void parts_out_change(struct json_out *json, const char *path, uint64_t size,
                      enum run_change change);

/* truncated, truncatedStreams. */
void parts_out_truncated(struct json_out *json, bool in_stdout, bool in_stderr);

#endif
