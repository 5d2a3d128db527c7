/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make a template's memory one that is cheap to fork.
 * Owns: nothing.
 * Threads: one.
 * May include: base, template.
 */
#include <malloc.h>
#include <unistd.h>

#include "lib/box/template.h"

#define HEAP_SPARE ((size_t)512 * 1024) /* which programs begin with */

void template_pages_own(int memory, uint64_t at)
{
    char byte;
    ssize_t ignored = -1;

    /* This way also where the page is read-only (proc_pid_mem(5)). */
    if (pread(memory, &byte, 1, (off_t)at) == 1) {
        ignored = pwrite(memory, &byte, 1, (off_t)at);
    }
    (void)ignored;
}

void template_pages_prepare(void)
{
#ifdef __GLIBC__
    /* Else each child would join free pieces at its first free(3) of something large, and copy the
     * pages they lie in. */
    (void)malloc_trim(HEAP_SPARE);
#endif
}
