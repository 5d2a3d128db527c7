/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_internal: the body of a batch, for batch*.c alone.
 */
#ifndef KERND_API_BATCH_INTERNAL_H
#define KERND_API_BATCH_INTERNAL_H

#include <pthread.h>

#include "api/batch.h"
#include "lib/base/alarm.h"
#include "lib/base/buf.h"
#include "lib/sandbox/execution.h"
#include "lib/sandbox/executions.h"

/* While so much waits to be read, no further item begins. */
#define BATCH_UNREAD_MAX ((size_t)8 << 20)

struct batch_item {
    struct batch *batch;
    size_t index;
    struct run_request *request; /* NULL once submitted */
    bool cancels;
    bool refused;
    struct execution *execution; /* while it runs; under the lock */
    struct execution_waiter waiter;
    struct buf line; /* what is told of it */
};

struct batch {
    struct api_stream stream;
    struct api_hook hook;
    struct api *api;
    struct session_actor actor;
    size_t count;
    size_t concurrency;
    bool lines;
    struct batch_item *items;
    struct alarm_entry alarm; /* the event thread hands work over through it */

    pthread_mutex_t lock; /* the rest, and each item's execution */
    size_t references;
    struct api_call *call; /* NULL once answered */
    size_t next;           /* the first item that was not begun */
    size_t running;
    size_t ended;
    size_t *order; /* indexes in the order of their ends */
    size_t told;   /* how many of them were sent */
    size_t sent;   /* bytes of the line that is being sent */
    size_t unread; /* bytes of lines that were not sent yet */
    bool left;     /* the client is gone */
    bool pumping;
    bool again;                  /* what pumps has to look once more */
    bool handing;                /* the alarm is set */
    void (*wake)(void *context); /* called under the lock: never after the stream was freed */
    void *wake_context;
};

void batch_ref(struct batch *batch);
void batch_unref(struct batch *batch);

/* Begins what can begin, or lets whoever is at it look once more. Any thread but the event one. */
void batch_pump(struct batch *batch);

/* Cancels what runs for the client alone. Any thread but the event one. */
void batch_cancel_running(struct batch *batch);

/* The form that is read line by line. */
void batch_stream_init(struct batch *batch);

/* Write what is told of an item into its line. */
void batch_line_problem(struct batch_item *item, const struct err *err);
void batch_line_result(struct batch_item *item, const struct execution *execution);
void batch_line_past(struct batch_item *item, const struct execution_view *view);

#endif
