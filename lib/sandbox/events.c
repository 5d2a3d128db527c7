/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events: the tape of an execution as the layer above sees it.
 * Owns: readers.
 * Threads: a sink by the run thread, a reader by its follower.
 * May include: lib/base, lib/journal, lib/sandbox.
 */
#include "lib/sandbox/events.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/base/text.h"
#include "lib/journal/journal.h"
#include "lib/journal/reader.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/executions.h"
#include "lib/sandbox/sandbox_internal.h"

#define END_HEADER ((size_t)4)
#define FULL_RESULTS 2
#define FULL_VALUE 3 /* of EVENT_TRUNCATED, for stdout */
/* Of an end event: its own text and the document. */
#define END_MAX ((size_t)256 << 20)

struct event_reader {
    struct tape *tape;
    struct reader *reader;
};

int events_open(struct sandbox *sandbox, const struct session_actor *actor,
                const struct events_from *from, struct event_reader **ret_reader, struct err *err)
{
    struct tape *tape;
    struct event_reader *reader;

    if (executions_check(sandbox, actor, from->id, err) < 0) {
        return -1;
    }
    tape = journal_find(sandbox->journal, from->id, err);
    if (tape == NULL) {
        return -1;
    }
    reader = alloc_zero(1, sizeof(*reader));
    reader->tape = tape;
    reader->reader = reader_new(tape, from->seq, from->wake, from->context);
    *ret_reader = reader;
    return 0;
}

enum events_state events_next(struct event_reader *reader, struct event *ret_event)
{
    struct tape_event event;

    switch (reader_next(reader->reader, &event)) {
    case READER_EVENT:
        *ret_event = (struct event){ .kind = (enum event_kind)event.kind,
                                     .seq = event.seq,
                                     .time_ms = event.time_ms,
                                     .value = event.value,
                                     .data = event.data,
                                     .size = event.size };
        return EVENTS_GOT;
    case READER_WAIT:
        return EVENTS_WAIT;
    case READER_END:
        return EVENTS_END;
    case READER_LOST:
        return EVENTS_LOST;
    }
    return EVENTS_LOST;
}

void events_close(struct event_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    reader_free(reader->reader);
    tape_unref(reader->tape);
    free(reader);
}

void events_split_end(const struct event *event, const char **ret_event_text,
                      size_t *ret_event_size, const char **ret_document, size_t *ret_document_size)
{
    const unsigned char *head = (const unsigned char *)event->data;
    size_t rest = event->size < END_HEADER ? 0 : event->size - END_HEADER;
    size_t first = 0;

    if (event->size >= END_HEADER) {
        first = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
        first = first > rest ? rest : first;
    }
    *ret_event_text = event->data + (rest > 0 ? END_HEADER : 0);
    *ret_event_size = first;
    *ret_document = *ret_event_text + first;
    *ret_document_size = rest - first;
}

/* False: the log is full. */
static bool append(struct tape *tape, enum event_kind kind, uint64_t value, const void *data,
                   size_t size)
{
    const bool output = kind == EVENT_STDOUT || kind == EVENT_STDERR;
    const struct tape_event event = { .kind = kind,
                                      .droppable = output || kind == EVENT_RESULT,
                                      .joinable = output,
                                      .value = value,
                                      .data = data,
                                      .size = size };

    return tape == NULL || tape_append(tape, &event);
}

void events_add(struct tape *tape, enum event_kind kind, uint64_t value, const void *data,
                size_t size)
{
    (void)append(tape, kind, value, data, size);
}

void events_add_end(struct tape *tape, enum event_kind kind, const struct buf *event_text,
                    const struct buf *document)
{
    CLEANUP_BUF struct buf data = BUF_INIT(END_MAX);
    const unsigned char head[END_HEADER] = { (unsigned char)(event_text->size >> 24),
                                             (unsigned char)(event_text->size >> 16),
                                             (unsigned char)(event_text->size >> 8),
                                             (unsigned char)event_text->size };

    (void)buf_append(&data, head, sizeof(head));
    (void)buf_append(&data, event_text->data, event_text->size);
    /* A document that is too big is left out; the events themselves are all there. */
    (void)buf_append(&data, document->data, document->size);
    events_add(tape, kind, 0, data.data, data.size);
}

/* ---- the sink ---- */

/* Who reads the log has to know that there was more: once for each of the three. */
static void tell_full(struct events_sink *sink, int what)
{
    if (!sink->told_full[what]) {
        sink->told_full[what] = true;
        events_add(sink->tape, EVENT_TRUNCATED, FULL_VALUE + (uint64_t)what, NULL, 0);
    }
}

/*
 * Bytes of one stream: what a cut character needs is put before them, and a character that they cut
 * is held back, so that no event starts or ends inside one.
 */
static void add_output(struct events_sink *sink, const struct sink_event *event)
{
    int stream = event->kind == SINK_STDERR;
    enum event_kind kind = stream == 0 ? EVENT_STDOUT : EVENT_STDERR;
    CLEANUP_BUF struct buf joined = BUF_INIT(event->size + sizeof(sink->held[0]));
    const char *data = event->data;
    size_t size = event->size;
    uint64_t offset = event->value;
    size_t tail;

    if (sink->held_size[stream] > 0) {
        (void)buf_append(&joined, sink->held[stream], sink->held_size[stream]);
        (void)buf_append(&joined, data, size);
        data = joined.data;
        size = joined.size;
        offset = sink->held_offset[stream];
    }
    tail = text_utf8_partial_tail(data, size);
    memcpy(sink->held[stream], data + size - tail, tail);
    sink->held_size[stream] = tail;
    sink->held_offset[stream] = offset + size - tail;
    if (size > tail && !append(sink->tape, kind, offset, data, size - tail)) {
        tell_full(sink, stream);
    }
}

void events_sink_start(struct events_sink *sink)
{
    atomic_store(&sink->started_ms, clock_wall_ms());
    events_add(sink->tape, EVENT_STARTED, 0, NULL, 0);
}

static void emit(struct sink *base, const struct sink_event *event)
{
    struct events_sink *sink = CONTAINER_OF(base, struct events_sink, sink);

    switch (event->kind) {
    case SINK_STARTED:
        events_sink_start(sink);
        break;
    case SINK_STDOUT:
    case SINK_STDERR:
        add_output(sink, event);
        break;
    case SINK_RESULT:
        if (!append(sink->tape, EVENT_RESULT, 0, event->data, event->size)) {
            tell_full(sink, FULL_RESULTS);
        }
        break;
    case SINK_TRUNCATED:
        events_sink_flush(sink);
        events_add(sink->tape, EVENT_TRUNCATED, event->value, NULL, 0);
        break;
    }
}

void events_sink_init(struct events_sink *sink, struct tape *tape)
{
    *sink = (struct events_sink){ .sink = { .emit = emit }, .tape = tape };
}

void events_sink_flush(struct events_sink *sink)
{
    for (int stream = 0; stream < 2; stream++) {
        if (sink->held_size[stream] > 0) {
            events_add(sink->tape, stream == 0 ? EVENT_STDOUT : EVENT_STDERR,
                       sink->held_offset[stream], sink->held[stream], sink->held_size[stream]);
            sink->held_size[stream] = 0;
        }
    }
}
