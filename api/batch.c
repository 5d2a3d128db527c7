/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: keep some items of a batch going until all have ended, and tell each.
 * Owns: the items: requests before they are submitted, lines of text after they ended.
 * Threads: any; one lock. Items are submitted by whoever ends another one.
 * May include: lib/base, lib/sandbox.
 */
#include "api/batch.h"

#include <stdlib.h>

#include "api/batch_internal.h"
#include "api/resource.h"
#include "api/ticket.h"
#include "lib/base/alloc.h"
#include "lib/base/container.h"
#include "lib/sandbox/sandbox.h"

#define LINE_MAX_BYTES ((size_t)1 << 30)

void batch_ref(struct batch *batch)
{
    (void)pthread_mutex_lock(&batch->lock);
    batch->references++;
    (void)pthread_mutex_unlock(&batch->lock);
}

void batch_unref(struct batch *batch)
{
    bool last;

    (void)pthread_mutex_lock(&batch->lock);
    last = --batch->references == 0;
    (void)pthread_mutex_unlock(&batch->lock);
    if (!last) {
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        run_request_free(batch->items[i].request);
        buf_done(&batch->items[i].line);
    }
    free(batch->items);
    free(batch->order);
    (void)pthread_mutex_destroy(&batch->lock);
    free(batch);
}

/* ---- answers ---- */

static void answer_document(struct batch *batch, struct api_call *call)
{
    struct json_out json;

    resource_reply(call, 200, &json);
    json_out_open(&json, '{');
    json_out_key(&json, "items");
    json_out_open(&json, '[');
    for (size_t i = 0; i < batch->count; i++) {
        json_out_raw(&json, batch->items[i].line.data, batch->items[i].line.size);
        buf_done(&batch->items[i].line);
    }
    json_out_close(&json, ']');
    json_out_close(&json, '}');
    resource_finish(call, &json);
}

/* Whoever takes the call out answers it. */
static struct api_call *take_call(struct batch *batch, bool when_all_ended)
{
    struct api_call *call = NULL;

    (void)pthread_mutex_lock(&batch->lock);
    if (!when_all_ended || batch->ended == batch->count) {
        call = batch->call;
        batch->call = NULL;
    }
    (void)pthread_mutex_unlock(&batch->lock);
    return call;
}

static void answer_if_ended(struct batch *batch)
{
    struct api_call *call = take_call(batch, true);

    if (call != NULL) {
        if (api_call_unwatch(call) != NULL) {
            batch_unref(batch);
        }
        answer_document(batch, call);
    }
}

/* The item's line is written. */
static void item_ended(struct batch_item *item)
{
    struct batch *batch = item->batch;

    if (batch->lines) {
        (void)buf_append_text(&item->line, "\n");
    }
    (void)pthread_mutex_lock(&batch->lock);
    batch->running--;
    batch->unread += item->line.size;
    batch->order[batch->ended++] = item->index;
    if (batch->wake != NULL) {
        batch->wake(batch->wake_context);
        batch->wake = NULL;
    }
    (void)pthread_mutex_unlock(&batch->lock);
    answer_if_ended(batch);
}

/* ---- running items ---- */

static void execution_done(struct execution_waiter *waiter)
{
    struct batch_item *item = CONTAINER_OF(waiter, struct batch_item, waiter);
    struct batch *batch = item->batch;
    struct execution *execution;

    (void)pthread_mutex_lock(&batch->lock);
    execution = item->execution;
    item->execution = NULL;
    (void)pthread_mutex_unlock(&batch->lock);
    batch_line_result(item, execution);
    execution_unref(execution);
    item_ended(item);
    batch_pump(batch);
    batch_unref(batch);
}

static void item_failed(struct batch_item *item, const char *id, const char *fingerprint,
                        const struct err *err)
{
    struct execution_view view;

    if (err->code == ERR_EXECUTION_EXISTS &&
        ticket_find_past(item->batch->api->sandbox, &item->batch->actor, id, fingerprint, &view)) {
        batch_line_past(item, &view);
        executions_view_done(&view);
    } else {
        batch_line_problem(item, err);
    }
    item_ended(item);
}

/* Counted as running already. */
static void submit(struct batch_item *item)
{
    struct batch *batch = item->batch;
    char *id = alloc_text(item->request->id);
    char *fingerprint = alloc_text(item->request->fingerprint);
    struct execution *execution;
    struct err err = ERR_INIT;
    bool left;

    execution = sandbox_submit(batch->api->sandbox, item->request, &err);
    item->request = NULL;
    if (execution == NULL) {
        item_failed(item, id, fingerprint, &err);
    } else {
        batch_ref(batch);
        (void)pthread_mutex_lock(&batch->lock);
        item->execution = execution_ref(execution);
        left = batch->left;
        (void)pthread_mutex_unlock(&batch->lock);
        execution_wait(execution, &item->waiter);
        if (left && item->cancels) {
            execution_cancel(execution, CANCEL_CLIENT_GONE);
        }
        execution_unref(execution);
    }
    free(id);
    free(fingerprint);
}

static void drop(struct batch_item *item)
{
    struct err err = ERR_INIT;

    (void)err_set(&err, ERR_CANCELLED, 0, "the client left before this began");
    batch_line_problem(item, &err);
    item_ended(item);
}

/* The next item to begin, or NULL. Under the lock. */
static struct batch_item *take_next(struct batch *batch)
{
    bool has_room = batch->left || !batch->lines || batch->unread < BATCH_UNREAD_MAX;

    if (batch->next == batch->count || batch->running >= batch->concurrency || !has_room) {
        return NULL;
    }
    batch->running++;
    return &batch->items[batch->next++];
}

static void begin(struct batch_item *item, bool left)
{
    if (item->refused) {
        item_ended(item);
    } else if (left && item->cancels) {
        drop(item);
    } else {
        submit(item);
    }
}

/* One thread at a time: who comes meanwhile only asks for another look. */
void batch_pump(struct batch *batch)
{
    struct batch_item *item;

    (void)pthread_mutex_lock(&batch->lock);
    batch->again = true;
    if (batch->pumping) {
        (void)pthread_mutex_unlock(&batch->lock);
        return;
    }
    batch->pumping = true;
    while (batch->again) {
        batch->again = false;
        while ((item = take_next(batch)) != NULL) {
            bool left = batch->left;

            (void)pthread_mutex_unlock(&batch->lock);
            begin(item, left);
            (void)pthread_mutex_lock(&batch->lock);
        }
    }
    batch->pumping = false;
    (void)pthread_mutex_unlock(&batch->lock);
}

/* ---- a client that leaves ---- */

void batch_cancel_running(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct batch_item *item = &batch->items[i];
        struct execution *execution = NULL;

        (void)pthread_mutex_lock(&batch->lock);
        if (item->cancels && item->execution != NULL) {
            execution = execution_ref(item->execution);
        }
        (void)pthread_mutex_unlock(&batch->lock);
        if (execution != NULL) {
            execution_cancel(execution, CANCEL_CLIENT_GONE);
            execution_unref(execution);
        }
    }
}

static void leave(struct batch *batch)
{
    (void)pthread_mutex_lock(&batch->lock);
    batch->left = true;
    (void)pthread_mutex_unlock(&batch->lock);
    batch_cancel_running(batch);
    batch_pump(batch);
}

static void client_gone(struct api_hook *hook, enum cancel_reason reason)
{
    struct batch *batch = CONTAINER_OF(hook, struct batch, hook);
    struct api_call *call = take_call(batch, false);

    (void)reason;
    leave(batch);
    if (call != NULL) {
        resource_finish_empty(call); /* nobody reads it */
    }
    batch_unref(batch);
}

/* ---- beginning ---- */

struct batch *batch_new(struct api_call *call, const struct batch_plan *plan)
{
    struct batch *batch = alloc_zero(1, sizeof(*batch));

    batch->api = call->api;
    batch->call = call;
    batch->actor = resource_actor(call);
    batch->count = plan->count;
    batch->concurrency = plan->concurrency;
    batch->lines = plan->lines;
    batch->items = alloc_zero(plan->count + 1, sizeof(*batch->items));
    batch->order = alloc_zero(plan->count + 1, sizeof(*batch->order));
    batch->references = 1;
    batch_stream_init(batch);
    batch->hook.fire = client_gone;
    (void)pthread_mutex_init(&batch->lock, NULL);
    for (size_t i = 0; i < plan->count; i++) {
        batch->items[i] = (struct batch_item){ .batch = batch,
                                               .index = i,
                                               .line = BUF_INIT(LINE_MAX_BYTES),
                                               .waiter = { .done = execution_done } };
    }
    return batch;
}

void batch_set_request(struct batch *batch, size_t index, struct run_request *request, bool cancels)
{
    batch->items[index].request = request;
    batch->items[index].cancels = cancels;
}

void batch_set_refused(struct batch *batch, size_t index, const struct err *err)
{
    batch->items[index].refused = true;
    batch_line_problem(&batch->items[index], err);
}

void batch_start(struct batch *batch)
{
    struct api_call *call = batch->call;

    batch_ref(batch); /* the stream's, or the hook's */
    if (batch->lines) {
        batch->call = NULL;
        call->reply.status = 200;
        api_reply_header(&call->reply, "Content-Type", "application/x-ndjson");
        call->reply.stream = &batch->stream;
        api_call_finish(call);
    } else {
        api_call_watch(call, &batch->hook);
    }
    batch_pump(batch);
    batch_unref(batch);
}
