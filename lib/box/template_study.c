/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find the pages that every program uses, and have forks copy them, or their tables, at once.
 * Owns: the pins on these pages, to the end of the process.
 * Threads: one.
 * May include: base, template.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/box/template.h"

#define MAPS_MAX ((size_t)4 * 1024 * 1024)
/* The program that is watched does nothing. */
#define STUDY_S 10
#define AREAS_MAX 4096
/* What is larger was set apart by a library for what may come. */
#define AREA_MAX (UINT64_C(1) << 30)
#define RUNS_MAX 1024 /* IORING_MAX_REG_BUFFERS before Linux 5.13 */
/* Bits of an entry of /proc/PID/pagemap (proc_pid_pagemap(5)). */
#define MAPPED_HERE_ALONE (UINT64_C(1) << 56)
#define PRESENT (UINT64_C(1) << 63)

/* Memory from start to end. */
struct area {
    uint64_t start;
    uint64_t end;
    bool is_written; /* else it is of a file, and nobody writes there */
    size_t there;    /* of a file, pages that the template has found */
    size_t used;     /* and those that the program did */
};

struct template_study {
    struct area areas[AREAS_MAX];
    size_t area_count;
    bool was_told;               /* what the program used, and */
    struct iovec runs[RUNS_MAX]; /* pages that were written, neighbours together */
    size_t run_count;
    uint64_t page_size;
};

/* Of the process that is watched, for its handler. */
static struct template_study *watched;

/* "start-end rwxp offset device inode path"; false: nothing is to be known of it. */
static bool read_area(const char *line, struct area *area)
{
    char mode[5] = "";

    /* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers */
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &area->start, &area->end, mode) != 3 ||
        mode[0] != 'r' || mode[3] != 'p') {
        return false;
    }
    area->is_written = mode[1] == 'w';
    return area->is_written ? area->end - area->start <= AREA_MAX : strchr(line, '/') != NULL;
}

static void add_page(struct template_study *study, uint64_t at)
{
    struct iovec *last = study->run_count > 0 ? &study->runs[study->run_count - 1] : NULL;

    if (last != NULL && (uint64_t)(uintptr_t)last->iov_base + last->iov_len == at) {
        last->iov_len += study->page_size;
    } else if (study->run_count < RUNS_MAX) {
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): an address is what the kernel tells */
        study->runs[study->run_count++] =
            (struct iovec){ .iov_base = (void *)(uintptr_t)at, .iov_len = study->page_size };
    }
}

/* How many are there; those that this process has to itself are noted, where written is not NULL.
 */
static size_t count_pages(int pagemap, const struct area *area, uint64_t page_size,
                          struct template_study *written)
{
    uint64_t entries[512];
    uint64_t at = area->start;
    size_t there = 0;
    ssize_t got;

    do {
        const uint64_t left = (area->end - at) / page_size;
        const size_t wanted = left < 512 ? (size_t)left : 512;

        got = pread(pagemap, entries, wanted * sizeof(*entries),
                    (off_t)(at / page_size * sizeof(*entries)));
        for (size_t i = 0; got > 0 && i < (size_t)got / sizeof(*entries); i++) {
            const bool is_there = (entries[i] & PRESENT) != 0;

            there += is_there;
            if (written != NULL && is_there && (entries[i] & MAPPED_HERE_ALONE) != 0) {
                add_page(written, at + i * page_size);
            }
        }
        at += got > 0 ? (uint64_t)got / sizeof(*entries) * page_size : 0;
    } while (got > 0 && at < area->end);
    return there;
}

static void list_areas(struct template_study *study)
{
    CLEANUP_FREE char *maps = fd_read_file("/proc/self/maps", MAPS_MAX, NULL);
    CLEANUP_FD int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    char *rest = maps;
    const char *line;

    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL && study->area_count < AREAS_MAX) {
        struct area *area = &study->areas[study->area_count];

        if (read_area(line, area)) {
            study->area_count++;
            area->there = area->is_written ? 0 : count_pages(pagemap, area, study->page_size, NULL);
        }
    }
}

/*
 * After a fork all pages are shared, and what is not was written since. Of a file without pages of
 * its own none is there: what is was looked for since.
 */
/* At the last call of all, exit_group(2), with everything that exit(3) has done behind it. */
static void tell_used(int number)
{
    const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    (void)number;
    for (size_t i = 0; pagemap >= 0 && i < watched->area_count; i++) {
        struct area *area = &watched->areas[i];

        area->used =
            count_pages(pagemap, area, watched->page_size, area->is_written ? watched : NULL);
    }
    watched->was_told = pagemap >= 0;
    (void)syscall(SYS_exit, 0);
}

/* False: nothing would be told of its end. */
static bool watch_end(void)
{
    const struct sigaction action = { .sa_handler = tell_used };
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]),
                                        .filter = filter };

    return sigaction(SIGSYS, &action, NULL) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

struct template_study *template_study_fork(pid_t *ret_pid)
{
    struct template_study *study =
        mmap(NULL, sizeof(*study), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    *ret_pid = -1;
    if (study == MAP_FAILED) {
        return NULL;
    }
    study->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
    list_areas(study);
    *ret_pid = fork();
    if (*ret_pid == 0) {
        watched = study;
        (void)alarm(STUDY_S);
        if (!watch_end()) {
            _exit(1);
        }
    }
    return study;
}

/*
 * As buffers of a ring that nobody uses: of all that pins memory in Linux this asks for no right
 * and no device. Its number stays open here, and is closed in every box like all others. Where
 * rings are not to be had (io_uring_disabled, a filter), or no memory may be locked, pages are
 * copied one by one as they are written.
 */
static bool pin(const struct iovec *runs, size_t count)
{
    struct io_uring_params parameters = { 0 };
    int ring = count == 0 ? -1 : (int)syscall(SYS_io_uring_setup, 1, &parameters);

    while (ring >= 0 && count > 0 &&
           syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, runs, count) < 0) {
        count = errno == ENOMEM ? count / 2 : 0; /* RLIMIT_MEMLOCK: some are better than none */
    }
    if (count == 0) {
        fd_close(ring);
    }
    return ring >= 0 && count > 0;
}

/*
 * What a program has no use for, or a little, it may find by faults: a page table costs each fork
 * 0.1 us a page, when it is copied and when it goes, a fault 1 to 2 us for sixteen pages around it.
 */
static void own_pages(const struct template_study *study)
{
    CLEANUP_FD int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

    for (size_t i = 0; memory >= 0 && i < study->area_count; i++) {
        const struct area *area = &study->areas[i];
        const bool is_useful = area->used > 0 && area->used * 2 >= area->there;

        if (!area->is_written && (is_useful || !study->was_told)) {
            template_pages_own(memory, area->start);
        }
    }
}

bool template_study_end(struct template_study *study, pid_t pid)
{
    bool pinned = false;

    if (study == NULL) {
        return false;
    }
    if (pid > 0) {
        (void)waitpid(pid, NULL, 0);
    }
    own_pages(study);
    if (pid > 0) {
        pinned = pin(study->runs, study->run_count);
    }
    (void)munmap(study, sizeof(*study));
    return pinned;
}
