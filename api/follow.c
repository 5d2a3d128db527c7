/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: feed a reply from the log of an execution.
 * Owns: the reader, the text of the event that is being sent.
 * Threads: the stream's functions on the event thread; wakes on any.
 * May include: lib/base, lib/sandbox.
 */
#include "api/follow.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/event_out.h"
#include "api/resource.h"
#include "lib/base/alarm.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/base/text.h"
#include "lib/sandbox/events.h"
#include "lib/sandbox/executions.h"

#define SILENCE_MS 10000 /* then a ping */
#define EVENT_MAX ((size_t)1 << 30)
#define CLEAN_END (-1L)
#define BROKEN_END (-2L)

struct follow {
    struct api_stream stream;
    struct alarm *alarm;
    struct event_reader *reader; /* NULL: there is no log */
    struct event_out form;
    char id[RESOURCE_ID_SIZE];
    bool live;
    struct execution *cancels; /* a reference, or NULL */
    bool ended;                /* the last event is in `text` */
    struct buf text;           /* what is being sent, from `sent` on */
    size_t sent;
    uint64_t from; /* seq of the first event to tell */
    uint64_t next_seq;
    int64_t spoke_ns; /* when there was something to send last */

    pthread_mutex_t lock; /* the next four */
    bool woken;
    bool silence_set;
    void (*wake)(void *context); /* the server's; NULL: it does not wait */
    void *wake_context;
    struct alarm_entry silence;
};

/* ---- waking ---- */

/* There may be something to send. Any thread, also with the log locked. */
static void poke(struct follow *follow)
{
    void (*wake)(void *context);
    void *context;

    (void)pthread_mutex_lock(&follow->lock);
    wake = follow->wake;
    context = follow->wake_context;
    follow->wake = NULL;
    follow->woken = wake == NULL;
    (void)pthread_mutex_unlock(&follow->lock);
    if (wake != NULL) {
        wake(context);
    }
}

static void event_came(void *context)
{
    poke(context);
}

static void silence_rang(struct alarm_entry *entry)
{
    struct follow *follow = CONTAINER_OF(entry, struct follow, silence);

    (void)pthread_mutex_lock(&follow->lock);
    follow->silence_set = false;
    (void)pthread_mutex_unlock(&follow->lock);
    poke(follow);
}

static void arm(struct api_stream *stream, void (*wake)(void *context), void *context)
{
    struct follow *follow = CONTAINER_OF(stream, struct follow, stream);
    int64_t deadline = follow->spoke_ns + SILENCE_MS * CLOCK_NS_PER_MS;
    bool now;
    bool set_silence;

    (void)pthread_mutex_lock(&follow->lock);
    now = follow->woken;
    follow->woken = false;
    set_silence = !now && !follow->silence_set;
    if (!now) {
        follow->silence_set = true;
        follow->wake_context = context;
        follow->wake = wake;
    }
    (void)pthread_mutex_unlock(&follow->lock);
    if (now) {
        wake(context);
    } else if (set_silence) {
        alarm_set(follow->alarm, &follow->silence, deadline);
    }
}

/* ---- reading ---- */

static bool is_silent(const struct follow *follow)
{
    return clock_mono_ns() - follow->spoke_ns >= SILENCE_MS * CLOCK_NS_PER_MS;
}

static long append_event(struct follow *follow, const struct event *event)
{
    follow->next_seq = event->seq + 1;
    follow->ended = event_out_is_last(event);
    if (event->seq < follow->from) {
        return 0;
    }
    return event_out_write(&follow->text, &follow->form, event) < 0 ? BROKEN_END : 0;
}

/*
 * The reader starts with the event before the wanted one. Where not even that is in the log, the
 * client saw what was lost with the server (or the event that is made up here).
 */
static long append_lost(struct follow *follow)
{
    const uint64_t seq = follow->next_seq < follow->from ? follow->from : follow->next_seq;

    follow->ended = true;
    return event_out_lost(&follow->text, &follow->form, seq) < 0 ? BROKEN_END : 0;
}

/* Puts what comes next into the text. 0, or how the stream goes on: nothing now (1), ended. */
static long fetch(struct follow *follow)
{
    struct event event;

    if (follow->reader == NULL) {
        return append_lost(follow);
    }
    (void)pthread_mutex_lock(&follow->lock);
    follow->woken = false;
    (void)pthread_mutex_unlock(&follow->lock);
    switch (events_next(follow->reader, &event)) {
    case EVENTS_GOT:
        return append_event(follow, &event);
    case EVENTS_LOST:
        return append_lost(follow);
    case EVENTS_END:
        return CLEAN_END;
    case EVENTS_WAIT:
        break;
    }
    if (!follow->live) {
        return CLEAN_END;
    }
    if (is_silent(follow)) {
        return event_out_ping(&follow->text, &follow->form) < 0 ? BROKEN_END : 0;
    }
    return 1;
}

static size_t copy_text(struct follow *follow, char *out, size_t max)
{
    size_t left = follow->text.size - follow->sent;
    size_t size = left < max ? left : max;

    memcpy(out, follow->text.data + follow->sent, size);
    follow->sent += size;
    if (follow->sent == follow->text.size) {
        /* What a large event needed is not kept for the small ones behind it. */
        if (follow->text.size > max) {
            buf_done(&follow->text);
        } else {
            buf_reset(&follow->text);
        }
        follow->sent = 0;
    }
    return size;
}

static long read_events(struct api_stream *stream, char *out, size_t max)
{
    struct follow *follow = CONTAINER_OF(stream, struct follow, stream);
    size_t done = 0;
    long state = 0;

    while (done < max && state == 0) {
        if (follow->text.size > follow->sent) {
            done += copy_text(follow, out + done, max - done);
        } else {
            state = follow->ended ? CLEAN_END : fetch(follow);
        }
    }
    if (done > 0) {
        follow->spoke_ns = clock_mono_ns();
        return (long)done;
    }
    return state == 1 ? 0 : state;
}

/* ---- a client that leaves ---- */

/* Cancelling may end an execution there and then, which is too much for the event thread. */
struct leaver {
    struct alarm_entry entry;
    struct execution *execution;
};

static void leaver_rang(struct alarm_entry *entry)
{
    struct leaver *leaver = CONTAINER_OF(entry, struct leaver, entry);

    execution_cancel(leaver->execution, CANCEL_CLIENT_GONE);
    execution_unref(leaver->execution);
    free(leaver);
}

static void leave(struct follow *follow)
{
    struct leaver *leaver;

    if (follow->ended || execution_state(follow->cancels) == EXECUTION_DONE) {
        execution_unref(follow->cancels);
        return;
    }
    leaver = alloc_zero(1, sizeof(*leaver));
    leaver->entry.ring = leaver_rang;
    leaver->execution = follow->cancels;
    alarm_set(follow->alarm, &leaver->entry, clock_mono_ns());
}

static void stream_free(struct api_stream *stream)
{
    struct follow *follow = CONTAINER_OF(stream, struct follow, stream);

    (void)alarm_clear(follow->alarm, &follow->silence);
    events_close(follow->reader);
    if (follow->cancels != NULL) {
        leave(follow);
    }
    buf_done(&follow->text);
    (void)pthread_mutex_destroy(&follow->lock);
    free(follow);
}

/* ---- beginning ---- */

/* The first event says how output is to be told, whoever reads it, from wherever on. */
static bool wants_base64(struct api_call *call, const char *id)
{
    struct session_actor actor = resource_actor(call);
    const struct events_from from = { .id = id };
    struct event_reader *reader = NULL;
    struct event event;
    bool base64 = false;

    if (events_open(call->api->sandbox, &actor, &from, &reader, NULL) == 0) {
        base64 = events_next(reader, &event) == EVENTS_GOT && event.kind == EVENT_QUEUED &&
                 event.size > 0;
        events_close(reader);
    }
    return base64;
}

static struct follow *follow_new(struct api_call *call, const struct follow_plan *plan)
{
    struct follow *follow = alloc_zero(1, sizeof(*follow));

    follow->stream = (struct api_stream){ .read = read_events, .arm = arm, .free = stream_free };
    follow->alarm = call->api->alarm;
    memcpy(follow->id, plan->id, strnlen(plan->id, sizeof(follow->id) - 1));
    follow->form = (struct event_out){ .sse = plan->sse,
                                       .base64 = wants_base64(call, plan->id),
                                       .id = follow->id };
    follow->live = plan->live;
    follow->text = BUF_INIT(EVENT_MAX);
    follow->from = plan->from;
    follow->next_seq = plan->from > 0 ? plan->from - 1 : 0;
    follow->spoke_ns = clock_mono_ns();
    follow->silence.ring = silence_rang;
    (void)pthread_mutex_init(&follow->lock, NULL);
    return follow;
}

/*
 * A browser connects again and again to a stream that ended, unless it is told that there is no
 * content (WHATWG HTML, server-sent events).
 */
static bool is_over(struct follow *follow, const struct follow_plan *plan)
{
    long state = 0;

    if (!plan->sse || !plan->live || plan->from == 0) {
        return false;
    }
    while (state == 0 && follow->text.size == 0) {
        state = fetch(follow);
    }
    return follow->text.size == 0 && state == CLEAN_END;
}

/* A server that was killed in the first moment of an execution left a record, and no log. */
static bool is_lost(struct api_call *call, const char *id)
{
    const struct session_actor actor = resource_actor(call);
    struct execution_view view;
    bool lost;

    if (executions_get(call->api->sandbox, &actor, id, false, &view, NULL) < 0) {
        return false;
    }
    lost = text_equal(view.fault, run_fault_text(RUN_FAULT_LOST));
    executions_view_done(&view);
    return lost;
}

static int open_log(struct follow *follow, struct api_call *call, struct err *err)
{
    const struct session_actor actor = resource_actor(call);
    const struct events_from from = {
        .id = follow->id, .seq = follow->next_seq, .wake = event_came, .context = follow
    };

    return events_open(call->api->sandbox, &actor, &from, &follow->reader, err) == 0 ||
                   is_lost(call, follow->id)
               ? 0
               : -1;
}

int follow_reply(struct api_call *call, const struct follow_plan *plan, struct err *err)
{
    struct follow *follow = follow_new(call, plan);

    if (open_log(follow, call, err) < 0) {
        stream_free(&follow->stream);
        return -1;
    }
    if (is_over(follow, plan)) {
        stream_free(&follow->stream);
        call->reply.status = 204;
        return 0;
    }
    if (plan->cancels != NULL) {
        follow->cancels = execution_ref(plan->cancels);
    }
    call->reply.status = 200;
    api_reply_header(&call->reply, "Content-Type",
                     plan->sse ? "text/event-stream" : "application/x-ndjson");
    api_reply_header(&call->reply, "Cache-Control", "no-store");
    call->reply.stream = &follow->stream;
    return 0;
}
