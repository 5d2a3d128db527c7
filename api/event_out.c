/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write events of executions.
 * Owns: the names of types and fields.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox.
 */
#include "api/event_out.h"

#include <stdlib.h>

#include "api/json_out.h"
#include "api/parts_out.h"
#include "api/problem.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"

bool event_out_is_last(const struct event *event)
{
    return event->kind == EVENT_EXIT || event->kind == EVENT_ERROR;
}

static const char *type_of(enum event_kind kind)
{
    switch (kind) {
    case EVENT_QUEUED:
        return "queued";
    case EVENT_STARTED:
        return "started";
    case EVENT_STDOUT:
        return "stdout";
    case EVENT_STDERR:
        return "stderr";
    case EVENT_RESULT:
        return "result";
    case EVENT_FILE:
        return "file";
    case EVENT_TRUNCATED:
        return "truncated";
    case EVENT_EXIT:
        return "exit";
    case EVENT_ERROR:
        return "error";
    }
    return "unknown";
}

/* ---- the frame around the object ---- */

static void begin(struct json_out *json, struct buf *out, const struct event_out *how,
                  const char *type, const uint64_t *seq)
{
    json_out_init(json, out);
    if (how->sse) {
        if (seq != NULL) {
            json->failed |= buf_printf(out, "id: %llu\n", (unsigned long long)*seq) < 0;
        }
        json->failed |= buf_printf(out, "event: %s\ndata: ", type) < 0;
    }
    json_out_open(json, '{');
    json_out_key(json, "type");
    json_out_string(json, type);
    if (seq != NULL) {
        json_out_key(json, "seq");
        json_out_count(json, *seq);
    }
}

static int end(struct json_out *json, const struct event_out *how)
{
    json_out_close(json, '}');
    if (!json_out_failed(json)) {
        json->failed = buf_append_text(json->out, how->sse ? "\n\n" : "\n") < 0;
    }
    return json_out_failed(json) ? -1 : 0;
}

/* ---- the types ---- */

static void write_queued(struct json_out *json, const struct event_out *how,
                         const struct event *event)
{
    json_out_key(json, "id");
    json_out_string(json, how->id);
    json_out_key(json, "position");
    json_out_count(json, event->value);
}

static void write_output(struct json_out *json, const struct event_out *how,
                         const struct event *event)
{
    json_out_key(json, "data");
    if (how->base64) {
        json_out_base64(json, event->data, event->size);
    } else {
        json_out_text(json, event->data, event->size);
    }
    json_out_key(json, "offset");
    json_out_count(json, event->value);
    if (how->base64) {
        json_out_key(json, "encoding");
        json_out_string(json, "base64");
    }
}

static void write_result(struct json_out *json, const struct event *event)
{
    struct bundle bundle;

    if (bundle_decode(event->data, event->size, &bundle, NULL) == 0) {
        parts_out_bundle(json, &bundle);
    }
}

static void write_file(struct json_out *json, const struct event *event)
{
    CLEANUP_FREE char *path = NULL;

    if (event->size > 0) {
        path = alloc_copy(event->data + 1, event->size - 1);
        parts_out_change(json, path, event->value, (enum run_change)(event->data[0] - '0'));
    }
}

/* See EVENT_TRUNCATED. */
static void write_truncated(struct json_out *json, uint64_t value)
{
    static const char *const streams[] = { "stdout", "stderr", "stdout", "stderr", "results" };

    json_out_key(json, "stream");
    json_out_string(json, value >= 1 && value <= 5 ? streams[value - 1] : NULL);
    json_out_key(json, "logOnly");
    json_out_bool(json, value > 2);
}

/* The renderer's object becomes part of this one. */
static void write_end(struct json_out *json, const struct event *event)
{
    const char *text = NULL;
    const char *document = NULL;
    size_t size = 0;
    size_t document_size = 0;

    events_split_end(event, &text, &size, &document, &document_size);
    if (size > 2) {
        json_out_raw(json, text + 1, size - 2);
    }
}

static void write_members(struct json_out *json, const struct event_out *how,
                          const struct event *event)
{
    switch (event->kind) {
    case EVENT_QUEUED:
        write_queued(json, how, event);
        break;
    case EVENT_STARTED:
        break;
    case EVENT_STDOUT:
    case EVENT_STDERR:
        write_output(json, how, event);
        break;
    case EVENT_RESULT:
        write_result(json, event);
        break;
    case EVENT_FILE:
        write_file(json, event);
        break;
    case EVENT_TRUNCATED:
        write_truncated(json, event->value);
        break;
    case EVENT_EXIT:
    case EVENT_ERROR:
        write_end(json, event);
        break;
    }
}

int event_out_write(struct buf *out, const struct event_out *how, const struct event *event)
{
    struct json_out json;

    begin(&json, out, how, type_of(event->kind), &event->seq);
    json_out_key(&json, "time");
    json_out_time(&json, event->time_ms);
    write_members(&json, how, event);
    return end(&json, how);
}

int event_out_ping(struct buf *out, const struct event_out *how)
{
    struct json_out json;

    begin(&json, out, how, "ping", NULL);
    return end(&json, how);
}

int event_out_lost(struct buf *out, const struct event_out *how, uint64_t seq)
{
    struct err lost = ERR_INIT;
    struct json_out json;

    (void)err_set(
        &lost, ERR_LOST, 0,
        "the server was killed while this ran: what it did after the last event is unknown");
    begin(&json, out, how, "error", &seq);
    json_out_key(&json, "time");
    json_out_null(&json);
    problem_write_members(&json, &lost);
    return end(&json, how);
}
