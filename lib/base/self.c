/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: measure this process, and make it smaller.
 * Owns: nothing.
 * Threads: any.
 * May include: libc.
 */
#include "lib/base/self.h"

#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"

#define US_PER_S 1e6

/* The first two numbers of /proc/self/statm are pages: of address space, and resident. */
static void read_memory(struct self_cost *cost)
{
    CLEANUP_FD int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    const int64_t page = sysconf(_SC_PAGESIZE);
    uint64_t pages[2] = { 0, 0 };
    char text[128];
    char *at = text;
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (size <= 0) {
        return;
    }
    text[size] = '\0';
    for (size_t i = 0; i < 2; i++) {
        char *end = at + strcspn(at, " \n");

        *end = '\0';
        if (text_parse_u64(at, &pages[i]) < 0) {
            return;
        }
        at = end + 1;
    }
    cost->virtual_bytes = (int64_t)pages[0] * page;
    cost->resident_bytes = (int64_t)pages[1] * page;
}

static int64_t count_fds(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int64_t count = 0;

    if (directory == NULL) {
        return -1;
    }
    while (readdir(directory) != NULL) {
        count++;
    }
    (void)closedir(directory);
    return count - 3; /* ".", ".." and the directory itself */
}

void self_measure(struct self_cost *ret_cost)
{
    struct rlimit limit;
    struct rusage usage;

    *ret_cost = (struct self_cost){
        .resident_bytes = -1, .virtual_bytes = -1, .open_fds = count_fds(), .max_fds = -1
    };
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        ret_cost->max_fds = (int64_t)limit.rlim_cur;
    }
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        ret_cost->cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                          (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / US_PER_S;
    }
    read_memory(ret_cost);
}

/*
 * Segments that are never written: the loader's relocations and what it protects afterwards
 * (PT_GNU_RELRO) are in a writable one. The kernel's own (vdso) is no file and costs nobody memory.
 */
static int drop_clean(struct dl_phdr_info *object, size_t size, void *context)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)size;
    (void)context;
    for (size_t i = 0; i < object->dlpi_phnum && strncmp(object->dlpi_name, "linux-", 6) != 0;
         i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const uintptr_t start = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1);
        const uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_filesz;

        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) == 0) {
            (void)madvise((void *)start, end - start, MADV_DONTNEED);
        }
    }
    return 0;
}

void self_shrink(void)
{
    (void)malloc_trim(0);
    (void)dl_iterate_phdr(drop_clean, NULL);
}
