/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self: what this process costs, as the kernel tells it (proc(5)), and less of it. Any thread that
 * may read files.
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

/*
 * Gives back memory that is not in use: free heap, and what is mapped of the program and its
 * libraries beyond what runs now. Of those, what only the start needed (symbols, relocations, code
 * that initialises) is the larger part. Clean pages: they come back from the page cache when they
 * are touched (madvise(2), MADV_DONTNEED). Some hundred microseconds, in which threads that run may
 * have to take pages back: for an idle process.
 */
void self_shrink(void);

#endif
