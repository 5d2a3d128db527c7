/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: gather the answers of the requests of one POST into its reply; end what runs when the client
 * leaves.
 * Owns: the exchange, its requests, the tree of their messages.
 * Threads: any; see mcp.c.
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/mcp_exchange.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/header.h"
#include "api/mcp_method.h"
#include "api/mcp_progress.h"
#include "api/resource.h"
#include "lib/base/alloc.h"
#include "lib/base/container.h"

#define ANSWER_MAX ((size_t)64 << 20)

/*
 * The handler, the hook of the call, each request under way and the stream of the reply hold a
 * reference. The call is there until all requests are done, or until the reply streams.
 */
struct mcp_exchange {
    struct api *api;
    struct api_call *call;
    struct json_object *tree;
    struct mcp_request *requests;
    size_t count;
    bool batch;
    bool sse;
    struct mcp_progress *progress; /* of the only request, NULL: none is told */
    char client[MCP_REQUEST_CLIENT_SIZE];
    atomic_int references;
    struct api_hook hook;
    pthread_mutex_t lock; /* the next two, and what requests say is under it */
    size_t pending;       /* requests that are not done; the handler counts as one */
    bool streaming;
};

static void let_go(struct mcp_exchange *exchange)
{
    if (atomic_fetch_sub(&exchange->references, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < exchange->count; i++) {
        mcp_message_done(&exchange->requests[i].message);
        mcp_workspace_done(&exchange->requests[i].workspace);
        free(exchange->requests[i].progress_token);
        buf_done(&exchange->requests[i].answer);
    }
    free(exchange->requests);
    (void)json_object_put(exchange->tree);
    (void)pthread_mutex_destroy(&exchange->lock);
    free(exchange);
}

/* ---- a client that leaves, a request that is cancelled ---- */

bool mcp_exchange_mark(struct mcp_request *request, struct execution **ret_execution)
{
    struct mcp_exchange *exchange = request->exchange;
    bool first;

    (void)pthread_mutex_lock(&exchange->lock);
    first = !request->cancelled;
    request->cancelled = true;
    cancel_fire(request->work, CANCEL_CLIENT_GONE);
    *ret_execution = first && request->execution != NULL ? execution_ref(request->execution) : NULL;
    (void)pthread_mutex_unlock(&exchange->lock);
    return first;
}

void mcp_exchange_set_work(struct mcp_request *request, struct cancel *cancel)
{
    (void)pthread_mutex_lock(&request->exchange->lock);
    request->work = cancel;
    if (request->cancelled) {
        cancel_fire(cancel, CANCEL_CLIENT_GONE);
    }
    (void)pthread_mutex_unlock(&request->exchange->lock);
}

bool mcp_exchange_is_cancelled(struct mcp_request *request)
{
    bool cancelled;

    (void)pthread_mutex_lock(&request->exchange->lock);
    cancelled = request->cancelled;
    (void)pthread_mutex_unlock(&request->exchange->lock);
    return cancelled;
}

void mcp_exchange_leave(struct mcp_exchange *exchange, enum cancel_reason reason)
{
    for (size_t i = 0; i < exchange->count; i++) {
        struct execution *execution = NULL;

        (void)mcp_exchange_mark(&exchange->requests[i], &execution);
        if (execution != NULL) {
            execution_cancel(execution, reason);
            execution_unref(execution);
        }
    }
}

static void client_gone(struct api_hook *hook, enum cancel_reason reason)
{
    struct mcp_exchange *exchange = CONTAINER_OF(hook, struct mcp_exchange, hook);

    mcp_exchange_leave(exchange, reason);
    let_go(exchange);
}

static void stream_gone(void *context)
{
    struct mcp_exchange *exchange = context;

    mcp_exchange_leave(exchange, CANCEL_CLIENT_GONE);
    let_go(exchange);
}

/* The caller has a reference of its own: that of the hook is never the last. */
static void forget_client(struct mcp_exchange *exchange)
{
    if (api_call_unwatch(exchange->call) != NULL) {
        (void)atomic_fetch_sub(&exchange->references, 1);
    }
}

/* ---- the reply ---- */

static void write_answers(struct mcp_exchange *exchange, struct buf *out)
{
    const char *before = "[";

    if (!exchange->batch) {
        (void)buf_append(out, exchange->requests[0].answer.data, exchange->requests[0].answer.size);
        return;
    }
    for (size_t i = 0; i < exchange->count; i++) {
        const struct buf *answer = &exchange->requests[i].answer;

        (void)buf_append_text(out, before);
        (void)buf_append(out, answer->data, answer->size);
        before = ",";
    }
    (void)buf_append_text(out, "]");
}

static void set_headers(const struct mcp_exchange *exchange, bool sse)
{
    struct api_reply *reply = &exchange->call->reply;

    api_reply_header(reply, "Content-Type", sse ? "text/event-stream" : "application/json");
    api_reply_header(reply, "Cache-Control", "no-store");
    if (sse) {
        /* Proxies must not gather it (a field of nginx that others know too). */
        api_reply_header(reply, "X-Accel-Buffering", "no");
    }
    if (exchange->client[0] != '\0') {
        api_reply_header(reply, "Mcp-Session-Id", exchange->client);
    }
}

/* Everything is done, and nothing was sent yet. */
static void reply(struct mcp_exchange *exchange)
{
    struct api_call *call = exchange->call;

    forget_client(exchange);
    if (exchange->count == 0) {
        call->reply.status = 202;
        api_call_finish(call);
        return;
    }
    call->reply.status = exchange->batch ? 200 : exchange->requests[0].status;
    set_headers(exchange, exchange->sse);
    if (exchange->sse) {
        (void)buf_append_text(&call->reply.body, "event: message\ndata: ");
    }
    write_answers(exchange, &call->reply.body);
    if (exchange->sse) {
        (void)buf_append_text(&call->reply.body, "\n\n");
    }
    api_call_finish(call);
}

/* One request, or the handler, is done. */
static void count_down(struct mcp_exchange *exchange, struct mcp_request *request)
{
    bool last;
    bool streaming;

    (void)pthread_mutex_lock(&exchange->lock);
    exchange->pending--;
    streaming = exchange->streaming;
    last = exchange->pending == 0;
    (void)pthread_mutex_unlock(&exchange->lock);
    if (streaming && request != NULL) {
        mcp_progress_end(exchange->progress, &request->answer);
    } else if (last && !streaming) {
        if (exchange->progress != NULL) {
            mcp_progress_free(exchange->progress);
        }
        reply(exchange);
    }
    let_go(exchange);
}

/* ---- requests ---- */

void mcp_exchange_run(struct mcp_request *request, struct execution *execution,
                      struct execution_waiter *waiter)
{
    struct mcp_exchange *exchange = request->exchange;
    bool cancelled;

    if (exchange->progress != NULL) {
        mcp_progress_follow(exchange->progress, request, execution);
    }
    (void)pthread_mutex_lock(&exchange->lock);
    request->execution = execution;
    cancelled = request->cancelled;
    (void)pthread_mutex_unlock(&exchange->lock);
    if (cancelled) {
        execution_cancel(execution, CANCEL_CLIENT_GONE);
    }
    /* The waiter gives the request's reference back, perhaps within this call. */
    (void)execution_ref(execution);
    execution_wait(execution, waiter);
    execution_unref(execution);
}

void mcp_exchange_done(struct mcp_request *request)
{
    struct mcp_exchange *exchange = request->exchange;
    struct execution *execution;

    mcp_live_remove(exchange->api->mcp, request);
    (void)pthread_mutex_lock(&exchange->lock);
    execution = request->execution;
    request->execution = NULL;
    (void)pthread_mutex_unlock(&exchange->lock);
    if (execution != NULL) {
        execution_unref(execution);
    }
    count_down(exchange, request);
}

void mcp_exchange_fail(struct mcp_request *request, const struct mcp_message_fault *fault)
{
    buf_reset(&request->answer);
    /* Clients of the older revisions take any other status for a failure of the transport. */
    request->status = request->stateless ? fault->status : 200;
    mcp_message_error(&request->answer, request->message.id, fault);
    mcp_exchange_done(request);
}

/* ---- beginning ---- */

struct mcp_exchange *mcp_exchange_new(struct api_call *call, struct json_object *tree, size_t max,
                                      bool sse)
{
    struct mcp_exchange *exchange = alloc_zero(1, sizeof(*exchange));

    exchange->api = call->api;
    exchange->call = call;
    exchange->tree = tree;
    exchange->requests = alloc_zero(max, sizeof(*exchange->requests));
    exchange->sse = sse;
    exchange->hook.fire = client_gone;
    atomic_init(&exchange->references, 1);
    (void)pthread_mutex_init(&exchange->lock, NULL);
    return exchange;
}

void mcp_exchange_set_batch(struct mcp_exchange *exchange)
{
    exchange->batch = true;
}

void mcp_exchange_name_client(struct mcp_exchange *exchange, const char *client)
{
    (void)snprintf(exchange->client, sizeof(exchange->client), "%s", client);
}

struct mcp_request *mcp_exchange_add(struct mcp_exchange *exchange,
                                     const struct mcp_message *message, const char *client,
                                     bool stateless)
{
    struct mcp_request *request = &exchange->requests[exchange->count++];
    struct json_object *token = NULL;

    request->api = exchange->api;
    request->actor = resource_actor(exchange->call);
    request->scope = exchange->call->scope;
    (void)mcp_workspace_read(exchange->call, &request->workspace, NULL); /* it was checked */
    (void)snprintf(request->client, sizeof(request->client), "%s", client);
    request->message = *message;
    request->stateless = stateless;
    request->exchange = exchange;
    request->answer = BUF_INIT(ANSWER_MAX);
    request->status = 200;
    if (message->meta != NULL &&
        json_object_object_get_ex(message->meta, "progressToken", &token)) {
        request->progress_token = mcp_message_id(token);
    }
    return request;
}

/* Where the only request asks for it, and the client takes a stream. */
static void prepare_progress(struct mcp_exchange *exchange)
{
    static const char *const stream[] = { "text/event-stream", NULL };
    const char *accept = api_call_header(exchange->call, "Accept");

    if (!exchange->batch && exchange->requests[0].progress_token != NULL && accept != NULL &&
        header_accept(accept, stream) == 0) {
        exchange->progress = mcp_progress_new(exchange->api->alarm, &exchange->requests[0]);
    }
}

/* If the answer takes longer, the reply begins now. */
static void maybe_stream(struct mcp_exchange *exchange)
{
    if (exchange->progress == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&exchange->lock);
    exchange->streaming = exchange->pending > 1;
    (void)pthread_mutex_unlock(&exchange->lock);
    if (!exchange->streaming) {
        return;
    }
    forget_client(exchange);
    atomic_fetch_add(&exchange->references, 1);
    exchange->call->reply.status = 200;
    set_headers(exchange, true);
    exchange->call->reply.stream = mcp_progress_stream(exchange->progress, stream_gone, exchange);
    api_call_finish(exchange->call);
}

void mcp_exchange_begin(struct mcp_exchange *exchange)
{
    size_t open = 0;

    for (size_t i = 0; i < exchange->count; i++) {
        open += exchange->requests[i].answer.size == 0;
    }
    exchange->pending = open + 1;
    atomic_fetch_add(&exchange->references, (int)open + 1);
    if (open > 0) {
        prepare_progress(exchange);
    }
    api_call_watch(exchange->call, &exchange->hook);
    for (size_t i = 0; i < exchange->count; i++) {
        if (exchange->requests[i].answer.size == 0) {
            mcp_live_add(exchange->api->mcp, &exchange->requests[i]);
            mcp_method_answer(&exchange->requests[i]);
        }
    }
    maybe_stream(exchange);
    count_down(exchange, NULL);
}
