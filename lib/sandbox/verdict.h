/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict: from what kernd did and saw to exit code and fault. Pure.
 *
 * A fault is set only when the sandbox acted, by evidence: a program that exits 137, 143 or 159 by
 * itself, or is killed by a signal of its own making, has none.
 */
#ifndef KERND_SANDBOX_VERDICT_H
#define KERND_SANDBOX_VERDICT_H

#include "lib/base/cancel.h"
#include "lib/box/box.h"
#include "lib/sandbox/run.h"

struct verdict_input {
    enum box_stop stop;
    enum cancel_reason cancelled;
    double timeout_s;
    uint64_t memory_mb;
    const struct box_outcome *outcome;
};

/* Fills exit code, signal and fault of the result. */
void verdict_apply(const struct verdict_input *input, struct run_result *result);

#endif
