/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait: a call that is answered when an execution ends, when a time has come, or when its client is
 * gone: whichever is first, and only once. No thread waits meanwhile. Any thread.
 */
#ifndef KERND_API_WAIT_H
#define KERND_API_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "lib/sandbox/execution.h"

enum wait_end {
    WAIT_DONE,  /* the execution has ended */
    WAIT_LATE,  /* the deadline has passed */
    WAIT_ALONE, /* nobody is there to read the answer, or the server stops */
};

struct wait_plan {
    struct execution *execution; /* taken over */
    int64_t deadline;            /* CLOCK_NEVER: as long as it takes */
    bool cancels;                /* the execution is cancelled when the client hangs up */
    /* Answers and finishes the call, on some thread; the execution is borrowed. */
    void (*answer)(struct api_call *call, struct execution *execution, enum wait_end end);
};

/* May answer at once: the call must not be touched afterwards. */
void wait_begin(struct api_call *call, const struct wait_plan *plan);

#endif
