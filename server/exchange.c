/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the life of an exchange: references, suspend and resume, hand-over to the lane and back.
 * Owns: the call's memory, its copies of the head, the body, the reply until it is sent.
 * Threads: as the header says for each function.
 * May include: server, api.h, lib/base, libmicrohttpd.
 */
#include "server/exchange.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "server/hangup.h"
#include "server/loop.h"

static void finish(struct api_call *call);

struct exchange *exchange_new(struct edge *edge, struct connection *connection,
                              struct MHD_Connection *mhd, const char *raw_target)
{
    struct exchange *exchange = alloc_zero(1, sizeof(*exchange));

    exchange->edge = edge;
    exchange->connection = connection;
    exchange->mhd = mhd;
    atomic_init(&exchange->references, 1);
    atomic_init(&exchange->input, EXCHANGE_INPUT_NONE);
    (void)pthread_mutex_init(&exchange->lock, NULL);
    exchange->raw_target = alloc_text(raw_target);
    exchange->target = alloc_copy(raw_target, strcspn(raw_target, "?"));
    exchange->call.received_ns = clock_mono_ns();
    steps_begin(&exchange->call.steps, exchange->call.received_ns);
    exchange->call.body_file = -1;
    exchange->call.finish = finish;
    cancel_init_to_ask(&exchange->call.cancel);
    atomic_init(&exchange->call.hook, NULL);
    api_reply_init(&exchange->call.reply);
    (void)atomic_fetch_add(&edge->exchanges, 1);
    return exchange;
}

struct exchange *exchange_ref(struct exchange *exchange)
{
    (void)atomic_fetch_add(&exchange->references, 1);
    return exchange;
}

void exchange_unref(struct exchange *exchange)
{
    if (atomic_fetch_sub(&exchange->references, 1) != 1) {
        return;
    }
    api_reply_done(&exchange->call.reply);
    cancel_done(&exchange->call.cancel);
    spool_done(exchange);
    buf_done(&exchange->body);
    free(exchange->raw_target);
    free(exchange->target);
    free(exchange->method);
    free(exchange->headers);
    free(exchange->header_text);
    (void)pthread_mutex_destroy(&exchange->lock);
    free(exchange);
}

void exchange_completed(struct exchange *exchange)
{
    struct edge *edge = exchange->edge;

    (void)atomic_fetch_sub(&edge->buffered, exchange->buffered);
    (void)atomic_fetch_sub(&edge->exchanges, 1);
    exchange_unref(exchange);
}

enum exchange_phase exchange_phase(struct exchange *exchange)
{
    enum exchange_phase phase;

    (void)pthread_mutex_lock(&exchange->lock);
    phase = exchange->phase;
    (void)pthread_mutex_unlock(&exchange->lock);
    return phase;
}

void exchange_set_phase(struct exchange *exchange, enum exchange_phase phase)
{
    (void)pthread_mutex_lock(&exchange->lock);
    exchange->phase = phase;
    (void)pthread_mutex_unlock(&exchange->lock);
}

/* ---- suspend and resume ---- */

void exchange_suspend(struct exchange *exchange, bool watched)
{
    struct edge *edge = exchange->edge;
    bool is_over;

    connection_wait(exchange->connection);
    (void)atomic_fetch_add(&edge->suspended, 1);
    MHD_suspend_connection(exchange->mhd);
    (void)pthread_mutex_lock(&exchange->lock);
    exchange->suspended = true;
    exchange->watch =
        watched ? hangup_watch(edge->hangup, exchange->connection->fd, exchange) : HANGUP_NONE;
    is_over =
        exchange->phase == EXCHANGE_REPLYING && (exchange->broken || atomic_load(&edge->stopping));
    (void)pthread_mutex_unlock(&exchange->lock);
    /* Ended since the stream was asked last: nobody else would wake it. */
    if (is_over) {
        exchange_resume(exchange);
    }
}

bool exchange_is_suspended(struct exchange *exchange)
{
    bool suspended;

    (void)pthread_mutex_lock(&exchange->lock);
    suspended = exchange->suspended;
    (void)pthread_mutex_unlock(&exchange->lock);
    return suspended;
}

static void resume(struct exchange *exchange,
                   void (*how)(struct loop *loop, struct MHD_Connection *mhd))
{
    struct edge *edge = exchange->edge;
    bool was_suspended;

    (void)pthread_mutex_lock(&exchange->lock);
    was_suspended = exchange->suspended;
    exchange->suspended = false;
    if (was_suspended) {
        /* Before the resume: after it the socket may be closed and its number used again. */
        hangup_unwatch(edge->hangup, exchange->watch);
        exchange->watch = HANGUP_NONE;
    }
    (void)pthread_mutex_unlock(&exchange->lock);
    if (was_suspended) {
        how(edge->loop, exchange->mhd);
        /* Only now: at zero libmicrohttpd may be stopped. */
        (void)atomic_fetch_sub(&edge->suspended, 1);
    }
}

void exchange_resume(struct exchange *exchange)
{
    resume(exchange, loop_resume);
}

/* ---- to the lane and back ---- */

void exchange_no_lane(const struct exchange *exchange, struct err *err)
{
    bool draining = atomic_load(&exchange->edge->draining);

    (void)err_set(err, draining ? ERR_SHUTTING_DOWN : ERR_QUEUE_FULL, 0,
                  draining ? "the server is shutting down" : "too many requests wait for a thread");
}

void exchange_fail(struct exchange *exchange, const struct err *err)
{
    api_reply_problem(&exchange->call.reply, err, exchange->target, exchange->request_id);
}

/* The call's finish, on any thread: from here on the event thread owns the reply. */
static void finish(struct api_call *call)
{
    struct exchange *exchange = CONTAINER_OF(call, struct exchange, call);

    exchange_set_phase(exchange, EXCHANGE_READY);
    resume(exchange, loop_answer);
    exchange_unref(exchange);
}

static void dispatch(struct pool_job *job)
{
    struct exchange *exchange = CONTAINER_OF(job, struct exchange, job);
    struct err err = ERR_INIT;

    if (api_route_body(exchange->call.route) == API_BODY_FILE && spool_finish(exchange, &err) < 0) {
        exchange_fail(exchange, &err);
        finish(&exchange->call);
        return;
    }
    api_dispatch(&exchange->call);
}

/* The lane is full, or closes before the job's turn. */
static void drop(struct pool_job *job)
{
    struct exchange *exchange = CONTAINER_OF(job, struct exchange, job);
    struct err err = ERR_INIT;

    exchange_no_lane(exchange, &err);
    exchange_fail(exchange, &err);
    finish(&exchange->call);
}

/* To the quick lane, behind what it still has to write; each way ends with finish. */
static void send_away(struct exchange *exchange)
{
    exchange->job = (struct pool_job){ .run = dispatch,
                                       .drop = drop,
                                       .caller = exchange->call.caller,
                                       .mobile = loop_goes_on(exchange->edge->loop) };
    (void)exchange_ref(exchange);
    exchange_suspend(exchange, true);
    if (!spool_run_behind(exchange, &exchange->job) &&
        pool_submit(exchange->edge->lane, &exchange->job, NULL) < 0) {
        drop(&exchange->job);
    }
}

static void fill_call(struct exchange *exchange)
{
    struct api_call *call = &exchange->call;
    const char *query = strchr(exchange->raw_target, '?');

    call->api = exchange->edge->api;
    call->method = exchange->method;
    call->target = exchange->target;
    call->query = query != NULL ? query + 1 : "";
    call->headers = exchange->headers;
    call->header_count = exchange->head.header_count;
    if (api_route_body(call->route) == API_BODY_JSON) {
        call->body = exchange->body.data != NULL ? exchange->body.data : "";
        call->body_size = exchange->body.size;
    }
    call->request_id = exchange->request_id;
}

int exchange_dispatch(struct exchange *exchange, struct err *err)
{
    /* The lane may have ended: nobody would resume the connection. */
    if (atomic_load(&exchange->edge->stopping)) {
        return err_set(err, ERR_SHUTTING_DOWN, 0, "the server is shutting down");
    }
    fill_call(exchange);
    steps_mark(&exchange->call.steps, STEP_GUARD);
    exchange_set_phase(exchange, EXCHANGE_AWAY);
    /* Either http_cancel finds the exchange away, or this finds that it came too late. */
    if (atomic_load(&exchange->edge->stopping)) {
        cancel_fire(&exchange->call.cancel, CANCEL_SHUTDOWN);
    }
    send_away(exchange);
    return 0;
}

/* ---- from other threads ---- */

void exchange_cancel(struct exchange *exchange, enum cancel_reason reason)
{
    bool is_away;
    bool is_stream;

    (void)pthread_mutex_lock(&exchange->lock);
    is_away = exchange->phase == EXCHANGE_AWAY;
    is_stream = exchange->phase == EXCHANGE_REPLYING && exchange->suspended;
    exchange->broken = exchange->phase == EXCHANGE_REPLYING;
    (void)pthread_mutex_unlock(&exchange->lock);
    if (is_away) {
        api_call_cancel(&exchange->call, reason);
    } else if (is_stream) {
        exchange_resume(exchange);
    }
}

bool exchange_claim(struct exchange *exchange, enum exchange_input by)
{
    int open = EXCHANGE_INPUT_OPEN;

    return atomic_compare_exchange_strong(&exchange->input, &open, (int)by);
}
