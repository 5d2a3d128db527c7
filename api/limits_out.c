/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write limits.
 * Owns: the names and the order of their fields.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox.
 */
#include "api/limits_out.h"

#include "api/member_out.h"

void limits_out_members(struct json_out *json, const struct limits *limits)
{
    member_out_cap(json, "timeoutS", limits->timeout_s);
    member_out_cap(json, "memoryMb", (double)limits->memory_mb);
    member_out_cap(json, "cpus", limits->cpus);
    member_out_cap(json, "pids", (double)limits->pids);
    member_out_cap(json, "diskMb", (double)limits->disk_mb);
    member_out_cap(json, "maxOutputBytes", (double)limits->max_output_bytes);
}
