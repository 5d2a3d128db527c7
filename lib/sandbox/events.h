/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events: what happened in an execution, in order, told to any number of followers while it runs
 * and after it ended, also after a restart.
 */
#ifndef KERND_SANDBOX_EVENTS_H
#define KERND_SANDBOX_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/sink.h"
#include "lib/sandbox/session.h"

struct sandbox;
struct tape;

/* Numbers are kept on disk: new ones at the end. */
enum event_kind {
    EVENT_QUEUED = 1, /* value: executions before it; any data: output is told as base64 */
    EVENT_STARTED = 2,
    EVENT_STDOUT =
        3, /* whole characters where the text is UTF-8; value: offset of its first byte */
    EVENT_STDERR = 4,
    EVENT_RESULT = 5,    /* an encoded bundle (lib/cell/bundle.h) */
    EVENT_FILE = 6,      /* '0' + enum run_change, then the path; value: size */
    EVENT_TRUNCATED = 7, /* value: 1 stdout, 2 stderr; 3, 4, 5: stdout, stderr, results are dropped
                            from this log alone, which is full */
    EVENT_EXIT = 8,      /* the end: see events_split_end */
    EVENT_ERROR = 9,     /* the end, when the server could not do it: the same */
};

struct event {
    enum event_kind kind;
    uint64_t seq; /* from 0, without holes */
    int64_t time_ms;
    uint64_t value;
    const char *data; /* good until the next call */
    size_t size;
};

enum events_state {
    EVENTS_GOT,
    EVENTS_WAIT, /* wake will be called, once, when to ask again */
    EVENTS_END,
    EVENTS_LOST, /* the server was killed while it ran: no end was ever written */
};

struct event_reader;

/*
 * Where to follow from: the event with this seq on. wake (NULL for who does not wait) is called on
 * whatever thread adds an event, with locks held: it must be quick and call nothing of this header.
 */
struct events_from {
    const char *id;
    uint64_t seq;
    void (*wake)(void *context);
    void *context;
};

/* 0, or -1 EXECUTION_NOT_FOUND (also when the actor may not see it), EVENTS_EXPIRED. */
int events_open(struct sandbox *sandbox, const struct session_actor *actor,
                const struct events_from *from, struct event_reader **ret_reader, struct err *err);
enum events_state events_next(struct event_reader *reader, struct event *ret_event);
void events_close(struct event_reader *reader);

/*
 * The two texts an end event carries, as the renderer made them: the event's own JSON, and the
 * document of the whole execution. Either may be empty.
 */
void events_split_end(const struct event *event, const char **ret_event_text,
                      size_t *ret_event_size, const char **ret_document, size_t *ret_document_size);

/* ---- for lib/sandbox ---- */

/* A sink that writes to an execution's tape; keeps whole characters together. */
struct events_sink {
    struct sink sink;
    struct tape *tape; /* borrowed */
    char held[2][4];   /* the start of a character that is not complete yet, per stream */
    size_t held_size[2];
    uint64_t held_offset[2];
    bool told_full[3];          /* stdout, stderr, results */
    _Atomic int64_t started_ms; /* wall clock, of EVENT_STARTED; 0: not yet. Any thread reads it */
};
void events_sink_init(struct events_sink *sink, struct tape *tape);
/* The program begins: adds EVENT_STARTED. */
void events_sink_start(struct events_sink *sink);
/* Writes what is held back. */
void events_sink_flush(struct events_sink *sink);

void events_add(struct tape *tape, enum event_kind kind, uint64_t value, const void *data,
                size_t size);
void events_add_end(struct tape *tape, enum event_kind kind, const struct buf *event_text,
                    const struct buf *document);

#endif
