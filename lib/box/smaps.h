/* SPDX-License-Identifier: Apache-2.0 */
/*
 * smaps: how much memory a process really holds, from /proc/PID/smaps (proc(5)).
 */
#ifndef KERND_BOX_SMAPS_H
#define KERND_BOX_SMAPS_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/box/memfiles.h"

/* Sums up lines of smaps; start with { .files = ... }. */
struct smaps {
    const struct memfiles *files; /* counted already */
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
 * the rest, or it is counted with the tmpfs or the memory file it lies in. Pure.
 */
void smaps_line(struct smaps *smaps, const char *line);
/* After the last line. */
void smaps_finish(struct smaps *smaps);

/* Bytes that pid holds beside what is in files; 0 when it is gone or can't be read. */
uint64_t smaps_of_process(pid_t pid, const struct memfiles *files);

#endif
