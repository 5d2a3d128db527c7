/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader: finding a place in a log and going on from there, in memory or in the file.
 * Owns: its buffer and its place; a link in the tape's list of readers.
 * Threads: one at a time; wake is called on others'.
 * May include: base.
 */
#include "lib/journal/reader.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/journal/reader_internal.h"
#include "lib/journal/tape_internal.h"
#include "lib/journal/window.h"

struct reader {
    struct tape *tape;
    uint64_t seq;    /* wanted */
    uint64_t offset; /* of the next record to look at */
    uint64_t at_seq; /* the seq of that record */
    bool located;
    struct window window; /* over the file */
    struct buf copy;      /* of a record in memory */

    /* Under the tape's lock. */
    bool waiting;
    void (*wake)(void *context);
    void *context;
    struct reader *previous;
    struct reader *next;
};

bool reader_any_waits(const struct tape *tape)
{
    const struct reader *reader = tape->readers;

    while (reader != NULL && !reader->waiting) {
        reader = reader->next;
    }
    return reader != NULL;
}

void reader_wake_all(struct tape *tape)
{
    for (struct reader *reader = tape->readers; reader != NULL; reader = reader->next) {
        if (reader->waiting) {
            reader->waiting = false;
            reader->wake(reader->context);
        }
    }
}

struct reader *reader_new(struct tape *tape, uint64_t seq, void (*wake)(void *context),
                          void *context)
{
    struct reader *reader = alloc_zero(1, sizeof(*reader));

    reader->tape = tape_ref(tape);
    reader->seq = seq;
    reader->wake = wake;
    reader->context = context;
    reader->copy = BUF_INIT(TAPE_MEMORY_MAX);
    (void)pthread_mutex_lock(&tape->lock);
    if (wake != NULL && tape->live) {
        tape_save(tape); /* makes the file now: who follows is told by threads with less time */
    }
    window_init(&reader->window, tape->fd);
    reader->next = tape->readers;
    if (reader->next != NULL) {
        reader->next->previous = reader;
    }
    tape->readers = reader;
    (void)pthread_mutex_unlock(&tape->lock);
    return reader;
}

void reader_free(struct reader *reader)
{
    struct tape *tape;

    if (reader == NULL) {
        return;
    }
    tape = reader->tape;
    (void)pthread_mutex_lock(&tape->lock);
    if (reader->previous != NULL) {
        reader->previous->next = reader->next;
    } else {
        tape->readers = reader->next;
    }
    if (reader->next != NULL) {
        reader->next->previous = reader->previous;
    }
    (void)pthread_mutex_unlock(&tape->lock);
    window_done(&reader->window);
    buf_done(&reader->copy);
    tape_unref(tape);
    free(reader);
}

/* Under the lock: the last mark at or before the wanted event. Marks are sorted. */
static void locate(struct reader *reader)
{
    const struct tape *tape = reader->tape;
    size_t low = 0;
    size_t high = tape->mark_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (tape->marks[middle].seq <= reader->seq) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if (tape->mark_count > 0) {
        reader->offset = tape->marks[low].offset;
        reader->at_seq = tape->marks[low].seq;
        reader->located = true;
    }
}

/* Under the lock: what to say when there is nothing at the reader's place. */
static enum reader_state nothing_more(struct reader *reader)
{
    const struct tape *tape = reader->tape;

    if (tape->finished) {
        return READER_END;
    }
    if (!tape->live) {
        return READER_LOST;
    }
    reader->waiting = reader->wake != NULL;
    return READER_WAIT;
}

/* Under the lock: copies the record at the reader's place out of memory. */
static const void *copy_from_memory(struct reader *reader, struct record *ret_head)
{
    struct tape *tape = reader->tape;
    const char *bytes = tape->memory.data + (reader->offset - tape->filed);

    memcpy(ret_head, bytes, sizeof(*ret_head));
    /* From now on nothing is joined to it: the reader goes on behind its end. */
    if (tape->read_seq <= ret_head->seq) {
        tape->read_seq = ret_head->seq + 1;
    }
    if (ret_head->seq < reader->seq) {
        return ""; /* on the way to the wanted one */
    }
    buf_reset(&reader->copy);
    (void)buf_append(&reader->copy, bytes + sizeof(*ret_head), ret_head->size);
    return reader->copy.data != NULL ? reader->copy.data : "";
}

/* Without the lock: what is in the file does not change any more. NULL: it is damaged. */
static const void *read_from_file(struct reader *reader, uint64_t filed, struct record *ret_head)
{
    const void *data;

    if (window_head(&reader->window, reader->offset, filed, ret_head) < 0 ||
        !record_plausible(ret_head, reader->at_seq, filed - reader->offset)) {
        return NULL;
    }
    if (ret_head->seq < reader->seq) {
        return "";
    }
    data = window_data(&reader->window, reader->offset, filed, ret_head);
    return data != NULL && record_check(ret_head, data) == ret_head->check ? data : NULL;
}

/* The record at the reader's place, wanted or before it. */
static enum reader_state read_record(struct reader *reader, struct record *ret_head,
                                     const void **ret_data)
{
    struct tape *tape = reader->tape;
    enum reader_state state = READER_EVENT;
    uint64_t filed;

    (void)pthread_mutex_lock(&tape->lock);
    filed = tape->filed;
    reader->window.fd = tape->fd;
    if (!reader->located) {
        locate(reader);
    }
    if (!reader->located || reader->offset >= filed + tape->memory.size) {
        state = nothing_more(reader);
    } else if (reader->offset >= filed) {
        *ret_data = copy_from_memory(reader, ret_head);
        tape_save(tape); /* before it is told */
    }
    (void)pthread_mutex_unlock(&tape->lock);
    if (state == READER_EVENT && reader->offset < filed) {
        *ret_data = read_from_file(reader, filed, ret_head);
        state = *ret_data != NULL ? READER_EVENT : READER_LOST;
    }
    return state;
}

enum reader_state reader_next(struct reader *reader, struct tape_event *ret_event)
{
    for (;;) {
        struct record head = { .size = 0 };
        const void *data = NULL;
        enum reader_state state = read_record(reader, &head, &data);

        if (state != READER_EVENT) {
            return state;
        }
        if (head.kind == TAPE_KIND_END) {
            return READER_END;
        }
        reader->offset += sizeof(head) + head.size;
        reader->at_seq++;
        if (head.seq >= reader->seq) {
            reader->seq = head.seq + 1;
            *ret_event = (struct tape_event){ .kind = head.kind,
                                              .value = head.value,
                                              .data = data,
                                              .size = head.size,
                                              .seq = head.seq,
                                              .time_ms = head.time_ms };
            return READER_EVENT;
        }
    }
}
