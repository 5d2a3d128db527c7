/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally: what came of all executions since the start, and what the sandbox holds now. For watching
 * it; any thread but the event one.
 */
#ifndef KERND_SANDBOX_TALLY_H
#define KERND_SANDBOX_TALLY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/sandbox/kernels.h"
#include "lib/sandbox/run.h"

struct sandbox;

#define TALLY_KINDS (RUN_PULL + 1)
#define TALLY_FAULTS (RUN_FAULT_LOST + 1)
#define TALLY_KERNEL_STATES (KERNELS_DEAD + 1)

/* Part of a sandbox; zeroed at first. */
struct tally {
    atomic_ullong ends[TALLY_KINDS][TALLY_FAULTS];
    atomic_ullong errors[TALLY_KINDS]; /* no result: the server could not */
    atomic_ullong journal_bytes;       /* as the janitor found them last */
};

void tally_end(struct tally *tally, enum run_kind kind, enum run_fault fault);
void tally_error(struct tally *tally, enum run_kind kind);

struct tally_view {
    uint64_t ends[TALLY_KINDS][TALLY_FAULTS];
    uint64_t errors[TALLY_KINDS];
    size_t kernels[TALLY_KERNEL_STATES];
    uint64_t store_bytes; /* the database and its log; 0: not known */
    uint64_t journal_bytes;
    uint64_t snapshot_bytes;
};

void tally_read(struct sandbox *sandbox, struct tally_view *ret_view);

#endif
