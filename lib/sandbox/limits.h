/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits: the caps of one call, as plain values, with the built-in defaults and maxima.
 */
#ifndef KERND_SANDBOX_LIMITS_H
#define KERND_SANDBOX_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct limits {
    double timeout_s;          /* always on */
    uint64_t memory_mb;        /* MiB, 0: no cap */
    double cpus;               /* 0: no cap */
    uint64_t pids;             /* 0: no cap */
    uint64_t disk_mb;          /* MiB of workspace, 0: no cap */
    uint64_t max_output_bytes; /* per stream */
};

/* timeout 30 s, memory 512 MiB, no cpu cap, 256 pids, no disk cap, 64 MiB of output. */
void limits_defaults(struct limits *ret_limits);

/* timeout 3600 s, half of the machine's memory, its cores, 4096 pids, 0, 256 MiB. */
void limits_maxima(struct limits *ret_limits);

/* As limits_check for a cell: only its time (0: the kernel's) and its output are its own. */
int limits_check_cell(const struct limits *limits, const struct limits *maxima, struct err *err);

/* 0, or -1 LIMIT_EXCEEDS_MAXIMUM naming the first field above its maximum ("/memoryMb"). */
int limits_check(const struct limits *limits, const struct limits *maxima, struct err *err);

#endif
