/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make a template's memory one that is cheap to fork.
 * Owns: nothing.
 * Threads: one.
 * May include: base, template.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/box/template.h"

#define MAPS_MAX ((size_t)4 * 1024 * 1024)
#define HEAP_SPARE ((size_t)512 * 1024) /* which programs begin with */

/* "start-end rwxp offset device inode path": of a file, and nobody writes there. 0: it is not. */
static off_t start_of_file(const char *line)
{
    uint64_t start = 0;
    char mode[5] = "";

    /* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers */
    return sscanf(line, "%" SCNx64 "-%*x %4s", &start, mode) == 2 && mode[0] == 'r' &&
                   mode[1] == '-' && mode[3] == 'p' && strchr(line, '/') != NULL
               ? (off_t)start
               : 0;
}

/* This way also where the page is read-only (proc_pid_mem(5)). */
static void write_as_it_is(int memory, off_t at)
{
    char byte;
    ssize_t ignored = -1;

    if (pread(memory, &byte, 1, at) == 1) {
        ignored = pwrite(memory, &byte, 1, at);
    }
    (void)ignored;
}

/*
 * Of memory without a page of its own, as a library's code is, a fork copies no page tables
 * (vma_needs_copy() in mm/memory.c of the kernel): each child would find all that it uses by
 * faults, a quarter of those it has. So every such part gets one, its first, by a write that
 * changes nothing.
 */
static void own_a_page_each(void)
{
    CLEANUP_FREE char *maps = fd_read_file("/proc/self/maps", MAPS_MAX, NULL);
    CLEANUP_FD int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    char *rest = maps;
    const char *line;

    while (memory >= 0 && rest != NULL && (line = strsep(&rest, "\n")) != NULL) {
        const off_t at = start_of_file(line);

        if (at > 0) {
            write_as_it_is(memory, at);
        }
    }
}

void template_pages_prepare(void)
{
    own_a_page_each();
#ifdef __GLIBC__
    /* Else each child would join free pieces at its first free(3) of something large, and copy the
     * pages they lie in. */
    (void)malloc_trim(HEAP_SPARE);
#endif
}
