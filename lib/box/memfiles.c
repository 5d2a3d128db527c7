/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: sum up memory files that processes have open.
 * Owns: nothing.
 * Threads: any.
 * May include: base, proctree.
 */
#include "lib/box/memfiles.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"

#define LOOKS_MAX 4096
/* Unit of st_blocks (stat(2)). */
#define BLOCK UINT64_C(512)

/* Asked once: that mount is the kernel's own, from its start to its end. */
uint64_t memfiles_device(void)
{
    static _Atomic uint64_t known;
    uint64_t device = atomic_load_explicit(&known, memory_order_relaxed);

    if (device == 0) {
        CLEANUP_FD int fd = memfd_create("kernd-probe", MFD_CLOEXEC);
        struct stat status;

        device = fd >= 0 && fstat(fd, &status) == 0 ? status.st_dev : 0;
        atomic_store_explicit(&known, device, memory_order_relaxed);
    }
    return device;
}

bool memfiles_has(const struct memfiles *files, uint64_t inode)
{
    for (size_t i = 0; i < files->known_count; i++) {
        if (files->known[i] == inode) {
            return true;
        }
    }
    return false;
}

static void count_file(struct memfiles *files, const struct stat *status)
{
    if (!S_ISREG(status->st_mode) || status->st_dev != files->device ||
        memfiles_has(files, status->st_ino)) {
        return;
    }
    files->bytes += (uint64_t)status->st_blocks * BLOCK;
    /* More files than that count wherever they are seen: too much is the safe side here. */
    if (files->known_count < MEMFILES_KNOWN_MAX) {
        files->known[files->known_count++] = status->st_ino;
    }
}

static void scan_process(struct memfiles *files, pid_t pid)
{
    char path[64];
    CLEANUP_DIR DIR *fds = NULL;
    struct dirent *entry = NULL;
    struct stat status;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    fds = opendir(path); /* close-on-exec, as glibc does */
    while (fds != NULL && files->looks < LOOKS_MAX && (entry = readdir(fds)) != NULL) {
        if (entry->d_name[0] != '.' && fstatat(dirfd(fds), entry->d_name, &status, 0) == 0) {
            count_file(files, &status);
        }
        files->looks++;
    }
}

void memfiles_scan(struct memfiles *files, const struct proctree *tree, size_t first)
{
    files->bytes = 0;
    files->looks = 0;
    files->known_count = 0;
    for (size_t i = 0; i < tree->count && files->looks < LOOKS_MAX; i++) {
        scan_process(files, tree->pids[(first + i) % tree->count]);
    }
}
