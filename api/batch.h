/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch: many executions for one call, some of them at a time, each told when it ends.
 */
#ifndef KERND_API_BATCH_H
#define KERND_API_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "api/api.h"
#include "lib/base/err.h"
#include "lib/sandbox/run.h"

#define BATCH_ITEMS_MAX 256

struct batch;

struct batch_plan {
    size_t count;       /* of items */
    size_t concurrency; /* at most this many are queued or run at once */
    bool lines;         /* NDJSON as they end, else one document in their order */
};

/* An empty batch. Any thread but the event one for all of these. */
struct batch *batch_new(struct api_call *call, const struct batch_plan *plan);

/*
 * The item is this request (taken over; caller, fingerprint and the like are set already), or was
 * refused with err (copied). cancels: it ends when the client leaves. Each item once, before
 * batch_start.
 */
void batch_set_request(struct batch *batch, size_t index, struct run_request *request,
                       bool cancels);
void batch_set_refused(struct batch *batch, size_t index, const struct err *err);

/* Runs it and answers. Takes the batch and the call over. */
void batch_start(struct batch *batch);

#endif
