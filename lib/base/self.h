/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self: what this process costs, as the kernel tells it (proc(5)). Any thread that may read files.
 */
#ifndef KERND_BASE_SELF_H
#define KERND_BASE_SELF_H

#include <stdint.h>

struct self_cost {
    double cpu_s;           /* user and system, all threads; children are not in it */
    int64_t resident_bytes; /* -1: not known, as below */
    int64_t virtual_bytes;
    int64_t open_fds;
    int64_t max_fds;
};

void self_measure(struct self_cost *ret_cost);

#endif
