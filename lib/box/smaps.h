/* SPDX-License-Identifier: Apache-2.0 */
/*
 * smaps: how much memory a process really holds, from /proc/PID/smaps (proc(5)).
 */
#ifndef KERND_BOX_SMAPS_H
#define KERND_BOX_SMAPS_H

#include <stdint.h>
#include <sys/types.h>

/* Sums up lines of smaps; start with { .shmem_device = ... }. */
struct smaps {
    uint64_t shmem_device; /* of memfd and shared anonymous memory, as makedev() */
    uint64_t bytes;
    uint64_t pss; /* of the mapping being read */
    uint64_t swap_pss;
    uint64_t anonymous;
    uint64_t swap;
    enum { SMAPS_NONE, SMAPS_WHOLE, SMAPS_ANONYMOUS_PART } kind;
};

/*
 * Takes one line without its newline. Anonymous and shared anonymous mappings count with their
 * proportional share; mappings of files with their private copies only, since the kernel can drop
 * the rest (or, in a tmpfs, it is counted with that). Pure.
 */
void smaps_line(struct smaps *smaps, const char *line);
/* After the last line. */
void smaps_finish(struct smaps *smaps);

/* Device number of the kernel's internal mount for shared memory; 0 unknown. */
uint64_t smaps_shmem_device(void);

/* Bytes that pid holds; 0 when it is gone or can't be read. */
uint64_t smaps_of_process(pid_t pid, uint64_t shmem_device);

#endif
