/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: stream the last lines that an execution wrote, now and then, and at the end its answer.
 * Owns: the reader of the execution's events, the text that is being sent.
 * Threads: the stream's functions on the event thread; the others, and wakes, on any. Lock order:
 * the log of events, this, the alarm.
 * May include: lib/base, lib/sandbox.
 */
#include "api/mcp_progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/json_out.h"
#include "api/resource.h"
#include "lib/base/alarm.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/base/text.h"
#include "lib/sandbox/events.h"
#include "lib/sandbox/sandbox.h"

#define PAUSE_MS 500     /* between two messages at least */
#define SILENCE_MS 10000 /* at most: clients give up after 60 s without one */
#define LINE_SIZE 200
#define TEXT_MAX ((size_t)64 << 20)
#define CLEAN_END (-1L)

struct mcp_progress {
    struct api_stream stream;
    struct alarm *alarm;
    char *token;
    atomic_int references; /* the exchange's, the stream's */
    void (*gone)(void *context);
    void *gone_context;
    struct alarm_entry leaver;

    pthread_mutex_t lock; /* all that follows */
    struct event_reader *reader;
    struct buf text; /* what is being sent, from `sent` on */
    size_t sent;
    uint64_t told; /* messages so far */
    int64_t spoke_ns;
    bool news;   /* the reader may have events */
    bool ended;  /* the answer is in the text */
    bool closed; /* the stream is gone */
    void (*wake)(void *context);
    void *wake_context;
    struct alarm_entry entry;
};

static void let_go(struct mcp_progress *progress)
{
    if (atomic_fetch_sub(&progress->references, 1) != 1) {
        return;
    }
    if (progress->reader != NULL) {
        events_close(progress->reader);
    }
    buf_done(&progress->text);
    free(progress->token);
    (void)pthread_mutex_destroy(&progress->lock);
    free(progress);
}

/* ---- waking ---- */

/* Something may be there to be sent. On the alarm's thread, or where nothing else is locked. */
static void poke(struct mcp_progress *progress)
{
    void (*wake)(void *context);

    (void)pthread_mutex_lock(&progress->lock);
    wake = progress->wake;
    progress->wake = NULL;
    (void)pthread_mutex_unlock(&progress->lock);
    if (wake != NULL) {
        wake(progress->wake_context);
    }
}

static void rang(struct alarm_entry *entry)
{
    poke(CONTAINER_OF(entry, struct mcp_progress, entry));
}

static int64_t next_time(const struct mcp_progress *progress)
{
    return progress->spoke_ns + (progress->news ? PAUSE_MS : SILENCE_MS) * CLOCK_NS_PER_MS;
}

/* The log is locked. */
static void event_came(void *context)
{
    struct mcp_progress *progress = context;

    (void)pthread_mutex_lock(&progress->lock);
    progress->news = true;
    if (progress->wake != NULL && !progress->closed) {
        alarm_set(progress->alarm, &progress->entry, next_time(progress));
    }
    (void)pthread_mutex_unlock(&progress->lock);
}

static void arm(struct api_stream *stream, void (*wake)(void *context), void *context)
{
    struct mcp_progress *progress = CONTAINER_OF(stream, struct mcp_progress, stream);
    bool now;

    (void)pthread_mutex_lock(&progress->lock);
    now = progress->ended;
    if (!now) {
        progress->wake_context = context;
        progress->wake = wake;
        alarm_set(progress->alarm, &progress->entry, next_time(progress));
    }
    (void)pthread_mutex_unlock(&progress->lock);
    if (now) {
        wake(context);
    }
}

/* ---- messages ---- */

/* The last line in what was written that is not blank; out keeps what it has if there is none. */
static void take_line(struct buf *out, const char *data, size_t size)
{
    size_t start;

    while (size > 0 && strchr(" \t\r\n", data[size - 1]) != NULL) {
        size--;
    }
    if (size == 0) {
        return;
    }
    for (start = size; start > 0 && strchr("\r\n", data[start - 1]) == NULL; start--) {
    }
    buf_reset(out);
    (void)buf_append_some(out, data + start, size - start);
}

static void read_lines(struct event_reader *reader, struct buf *out)
{
    struct event event;

    while (events_next(reader, &event) == EVENTS_GOT) {
        if (event.kind == EVENT_STDOUT || event.kind == EVENT_STDERR) {
            take_line(out, event.data, event.size);
        }
    }
}

/* Locked. */
static void add_message(struct mcp_progress *progress, const struct buf *line)
{
    CLEANUP_BUF struct buf text = BUF_INIT((size_t)4096);
    struct json_out json;

    progress->told++;
    progress->spoke_ns = clock_mono_ns();
    json_out_init(&json, &text);
    json_out_open(&json, '{');
    json_out_key(&json, "jsonrpc");
    json_out_string(&json, "2.0");
    json_out_key(&json, "method");
    json_out_string(&json, "notifications/progress");
    json_out_key(&json, "params");
    json_out_open(&json, '{');
    json_out_key(&json, "progressToken");
    json_out_raw(&json, progress->token, strlen(progress->token));
    json_out_key(&json, "progress");
    json_out_count(&json, progress->told);
    if (line->size > 0) {
        json_out_key(&json, "message");
        json_out_text(&json, line->data,
                      line->size - text_utf8_partial_tail(line->data, line->size));
    }
    json_out_close(&json, '}');
    json_out_close(&json, '}');
    if (!json_out_failed(&json)) {
        (void)buf_printf(&progress->text, "event: message\ndata: %s\n\n", text.data);
    }
}

/* If it is time for a message, it is in the text afterwards. Locked, but not while it reads. */
static void speak(struct mcp_progress *progress)
{
    CLEANUP_BUF struct buf line = BUF_INIT(LINE_SIZE);
    struct event_reader *reader = progress->news ? progress->reader : NULL;

    if (!clock_passed(next_time(progress))) {
        return;
    }
    progress->news = false;
    if (reader != NULL) {
        (void)pthread_mutex_unlock(&progress->lock);
        read_lines(reader, &line);
        (void)pthread_mutex_lock(&progress->lock);
    }
    if (!progress->ended &&
        (line.size > 0 || clock_passed(progress->spoke_ns + SILENCE_MS * CLOCK_NS_PER_MS))) {
        add_message(progress, &line);
    }
}

/* ---- the stream ---- */

static long copy_text(struct mcp_progress *progress, char *out, size_t max)
{
    const size_t left = progress->text.size - progress->sent;
    const size_t size = left < max ? left : max;

    memcpy(out, progress->text.data + progress->sent, size);
    progress->sent += size;
    if (progress->sent == progress->text.size) {
        buf_reset(&progress->text);
        progress->sent = 0;
    }
    return (long)size;
}

static long read_text(struct api_stream *stream, char *out, size_t max)
{
    struct mcp_progress *progress = CONTAINER_OF(stream, struct mcp_progress, stream);
    long result = 0;

    (void)pthread_mutex_lock(&progress->lock);
    if (progress->text.size == 0 && !progress->ended) {
        speak(progress);
    }
    if (progress->text.size > 0) {
        result = copy_text(progress, out, max);
    } else if (progress->ended) {
        result = CLEAN_END;
    }
    (void)pthread_mutex_unlock(&progress->lock);
    return result;
}

static void leaver_rang(struct alarm_entry *entry)
{
    struct mcp_progress *progress = CONTAINER_OF(entry, struct mcp_progress, leaver);

    progress->gone(progress->gone_context);
    let_go(progress);
}

/* What ends with the client may take longer than the event thread has time for. */
static void stream_free(struct api_stream *stream)
{
    struct mcp_progress *progress = CONTAINER_OF(stream, struct mcp_progress, stream);

    (void)pthread_mutex_lock(&progress->lock);
    progress->closed = true;
    progress->wake = NULL;
    (void)pthread_mutex_unlock(&progress->lock);
    (void)alarm_clear(progress->alarm, &progress->entry);
    progress->leaver.ring = leaver_rang;
    alarm_set(progress->alarm, &progress->leaver, clock_mono_ns());
}

struct api_stream *mcp_progress_stream(struct mcp_progress *progress, void (*gone)(void *context),
                                       void *context)
{
    progress->gone = gone;
    progress->gone_context = context;
    atomic_fetch_add(&progress->references, 1);
    return &progress->stream;
}

/* ---- the exchange's side ---- */

struct mcp_progress *mcp_progress_new(struct alarm *alarm, const struct mcp_request *request)
{
    struct mcp_progress *progress = alloc_zero(1, sizeof(*progress));

    progress->stream = (struct api_stream){ .read = read_text, .arm = arm, .free = stream_free };
    progress->alarm = alarm;
    progress->token = alloc_text(request->progress_token);
    progress->text = BUF_INIT(TEXT_MAX);
    progress->spoke_ns = clock_mono_ns();
    progress->entry.ring = rang;
    atomic_init(&progress->references, 1);
    (void)pthread_mutex_init(&progress->lock, NULL);
    return progress;
}

void mcp_progress_free(struct mcp_progress *progress)
{
    let_go(progress);
}

void mcp_progress_follow(struct mcp_progress *progress, const struct mcp_request *request,
                         const struct execution *execution)
{
    const struct events_from from = { .id = execution_id(execution),
                                      .wake = event_came,
                                      .context = progress };
    struct event_reader *reader = NULL;

    if (events_open(request->api->sandbox, &request->actor, &from, &reader, NULL) < 0) {
        return;
    }
    (void)pthread_mutex_lock(&progress->lock);
    progress->reader = reader;
    progress->news = true;
    if (progress->wake != NULL && !progress->closed) {
        alarm_set(progress->alarm, &progress->entry, next_time(progress));
    }
    (void)pthread_mutex_unlock(&progress->lock);
}

void mcp_progress_end(struct mcp_progress *progress, const struct buf *answer)
{
    (void)pthread_mutex_lock(&progress->lock);
    progress->ended = true;
    (void)buf_append_text(&progress->text, "event: message\ndata: ");
    (void)buf_append(&progress->text, answer->data, answer->size);
    (void)buf_append_text(&progress->text, "\n\n");
    (void)pthread_mutex_unlock(&progress->lock);
    poke(progress);
    let_go(progress);
}
