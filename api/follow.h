/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow: the events of an execution as the body of a reply.
 *
 * A reader takes events from the log at its own pace, so that a slow one holds up nobody and needs
 * no more memory than one event.
 */
#ifndef KERND_API_FOLLOW_H
#define KERND_API_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "lib/base/err.h"
#include "lib/sandbox/execution.h"

struct follow_plan {
    const char *id; /* of the execution; copied */
    uint64_t from;  /* seq of the first event */
    bool sse;       /* else NDJSON */
    bool live;      /* goes on until the end of the execution, else to the end of what there is */
    struct execution *cancels; /* cancelled when the client leaves before its end; NULL: none */
};

/*
 * Fills the reply of the call: status, Content-Type, stream. The call is still to be finished. 0,
 * or -1 EXECUTION_NOT_FOUND, EVENTS_EXPIRED. Any thread but the event one.
 */
int follow_reply(struct api_call *call, const struct follow_plan *plan, struct err *err);

#endif
