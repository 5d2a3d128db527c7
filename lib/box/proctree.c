/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: list the processes below one.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/box/proctree.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

bool proctree_supported(void)
{
    static atomic_int known; /* 1: yes, -1: no; a kernel's configuration stays what it is */
    int supported = atomic_load_explicit(&known, memory_order_relaxed);

    if (supported == 0) {
        supported = access("/proc/thread-self/children", R_OK) == 0 ? 1 : -1;
        atomic_store_explicit(&known, supported, memory_order_relaxed);
    }
    return supported > 0;
}

/* Adds the pids in a text like "12 345 ". A number cut by the end of a piece goes on in *number. */
static void add_pids(struct proctree *tree, const char *text, size_t size, pid_t *number)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            *number = *number * 10 + (text[i] - '0');
        } else if (*number > 0) {
            if (tree->count < PROCTREE_MAX) {
                tree->pids[tree->count++] = *number;
            }
            *number = 0;
        }
    }
}

static void add_children_of_task(int task_dir, const char *task, struct proctree *tree)
{
    char path[64];
    char piece[4096];
    CLEANUP_FD int fd = -1;
    pid_t number = 0;
    ssize_t got = 0;

    (void)snprintf(path, sizeof(path), "%.20s/children", task);
    fd = openat(task_dir, path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (got = read(fd, piece, sizeof(piece))) > 0) {
        add_pids(tree, piece, (size_t)got, &number);
    }
}

/* Returns the number of threads of pid. */
static size_t add_children(pid_t pid, struct proctree *tree)
{
    char path[64];
    CLEANUP_DIR DIR *tasks = NULL;
    struct dirent *entry = NULL;
    size_t count = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
    tasks = opendir(path); /* close-on-exec, as glibc does */
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        if (entry->d_name[0] != '.') {
            add_children_of_task(dirfd(tasks), entry->d_name, tree);
            count++;
        }
    }
    return count;
}

void proctree_list(pid_t root, struct proctree *tree)
{
    tree->count = 0;
    tree->tasks = 0;
    (void)add_children(root, tree);
    for (size_t i = 0; i < tree->count; i++) {
        tree->tasks += add_children(tree->pids[i], tree);
    }
}

/* Resident bytes of a process, shared ones too; 0 when it is gone. */
static uint64_t resident(pid_t pid)
{
    char path[64];
    char text[128];
    CLEANUP_FD int fd = -1;
    uint64_t pages = 0;
    ssize_t got = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/statm", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (got <= 0) {
        return 0;
    }
    text[got] = '\0';
    /* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers */
    return sscanf(text, "%*u %" SCNu64, &pages) == 1 ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uint64_t proctree_resident(const struct proctree *tree)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < tree->count; i++) {
        sum += resident(tree->pids[i]);
    }
    return sum;
}
