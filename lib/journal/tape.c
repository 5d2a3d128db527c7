/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape: appending to a log, spilling it to its file, finishing it.
 * Owns: the log's memory and its descriptor.
 * Threads: any.
 * May include: base.
 */
#include "lib/journal/tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/journal/journal_internal.h"
#include "lib/journal/reader_internal.h"
#include "lib/journal/shelf.h"
#include "lib/journal/tape_internal.h"

#define JOIN_SIZE 16384
#define JOIN_MS 20
#define MARK_BYTES 65536
#define END_SIZE sizeof(struct record)

struct tape *tape_new(struct journal *journal, const char *id, uint64_t max_bytes)
{
    struct tape *tape = alloc_zero(1, sizeof(*tape));

    atomic_init(&tape->references, 1);
    (void)pthread_mutex_init(&tape->lock, NULL);
    tape->journal = journal;
    (void)snprintf(tape->id, sizeof(tape->id), "%s", id);
    tape->fd = -1;
    tape->memory = BUF_INIT(TAPE_MEMORY_MAX);
    tape->max_bytes = max_bytes;
    tape->live = true;
    return tape;
}

struct tape *tape_ref(struct tape *tape)
{
    (void)atomic_fetch_add(&tape->references, 1);
    return tape;
}

void tape_unref(struct tape *tape)
{
    if (tape == NULL || atomic_fetch_sub(&tape->references, 1) > 1) {
        return;
    }
    fd_close(tape->fd);
    buf_done(&tape->memory);
    free(tape->marks);
    (void)pthread_mutex_destroy(&tape->lock);
    free(tape);
}

void tape_mark(struct tape *tape, uint64_t seq, uint64_t offset)
{
    if (tape->mark_count > 0 && offset - tape->marks[tape->mark_count - 1].offset < MARK_BYTES) {
        return;
    }
    tape->marks = alloc_resize(tape->marks, tape->mark_count + 1, sizeof(*tape->marks));
    tape->marks[tape->mark_count++] = (struct tape_mark){ .seq = seq, .offset = offset };
}

/* Checksums are set when records are written: until then they may still grow. */
static void seal(struct tape *tape)
{
    for (size_t at = tape->bound; at < tape->memory.size;) {
        struct record head;

        memcpy(&head, tape->memory.data + at, sizeof(head));
        head.check = record_check(&head, tape->memory.data + at + sizeof(head));
        memcpy(tape->memory.data + at, &head, sizeof(head));
        at += sizeof(head) + head.size;
    }
}

static int write_to_binder(struct tape *tape)
{
    if (binder_write(tape->journal->binders, tape->id, &tape->memory, tape->bound, &tape->place) <
        0) {
        return -1;
    }
    atomic_store(&tape->binder, tape->place.number);
    tape->bound = tape->memory.size;
    return 0;
}

static int write_to_file(struct tape *tape)
{
    if (tape->fd < 0) {
        tape->fd = shelf_make(tape->journal->directory, tape->id);
    }
    if (tape->fd < 0) {
        return -1;
    }
    if (lseek(tape->fd, (off_t)tape->filed, SEEK_SET) < 0 ||
        fd_write_full(tape->fd, tape->memory.data, tape->memory.size) < 0) {
        return -1;
    }
    tape->filed += tape->memory.size;
    tape->bound = 0;
    buf_reset(&tape->memory);
    return 0;
}

int tape_spill(struct tape *tape)
{
    if (tape->memory.size == tape->bound || tape->unwanted) {
        return 0;
    }
    seal(tape);
    return tape->fd < 0 && tape->memory.size <= BINDER_LOG_MAX ? write_to_binder(tape)
                                                               : write_to_file(tape);
}

void tape_erase(struct tape *tape)
{
    tape->unwanted = true;
    if (tape->fd >= 0) {
        shelf_remove(tape->journal->directory, tape->id);
    }
    binder_void(tape->journal->binders, tape->id, &tape->place);
}

void tape_save(struct tape *tape)
{
    if (tape_spill(tape) < 0) {
        tape->capped = true;
    }
}

/* The last record in memory if this event can be joined to it, with its head in *ret_head. */
static bool can_join(const struct tape *tape, const struct tape_event *event, int64_t now_ms,
                     struct record *ret_head)
{
    if (!event->joinable || tape->memory.size == tape->bound) {
        return false;
    }
    memcpy(ret_head, tape->memory.data + tape->last, sizeof(*ret_head));
    return ret_head->kind == event->kind && ret_head->seq >= tape->read_seq &&
           ret_head->size + event->size <= JOIN_SIZE && now_ms - ret_head->time_ms <= JOIN_MS;
}

static void add_record(struct tape *tape, const struct record *head, const void *data)
{
    tape_mark(tape, head->seq, tape->filed + tape->memory.size);
    tape->last = tape->memory.size;
    (void)buf_append(&tape->memory, head, sizeof(*head));
    (void)buf_append(&tape->memory, data, head->size);
}

/* Would it pass the maximum? From then on everything of its kind is dropped: no holes in output. */
static bool too_much(struct tape *tape, const struct tape_event *event)
{
    uint64_t size = tape->filed + tape->memory.size + sizeof(struct record) + event->size;

    if (event->droppable && size + END_SIZE > tape->max_bytes) {
        tape->capped = true;
    }
    return (event->droppable && tape->capped) || event->size > RECORD_DATA_MAX;
}

static void add_event(struct tape *tape, const struct tape_event *event)
{
    int64_t now_ms = clock_wall_ms();
    struct record head;

    if (can_join(tape, event, now_ms, &head)) {
        head.size += (uint32_t)event->size;
        memcpy(tape->memory.data + tape->last, &head, sizeof(head));
        (void)buf_append(&tape->memory, event->data, event->size);
    } else {
        head = (struct record){ .size = (uint32_t)event->size,
                                .kind = event->kind,
                                .seq = tape->next_seq++,
                                .time_ms = now_ms,
                                .value = event->value };
        add_record(tape, &head, event->data);
    }
    if (event->kind < TAPE_KIND_MAX) {
        tape->bytes_of[event->kind] += event->size;
    }
}

bool tape_append(struct tape *tape, const struct tape_event *event)
{
    bool kept = false;

    (void)pthread_mutex_lock(&tape->lock);
    if (!tape->finished && !too_much(tape, event)) {
        add_event(tape, event);
        kept = true;
        if (tape->memory.size >= TAPE_SPILL || reader_any_waits(tape)) {
            tape_save(tape);
        }
        if (!tape->saving && tape->memory.size > tape->bound) {
            tape->saving = true;
            journal_save_later(tape->journal, tape);
        }
        reader_wake_all(tape);
    }
    (void)pthread_mutex_unlock(&tape->lock);
    return kept;
}

void tape_finish(struct tape *tape)
{
    bool first;

    (void)pthread_mutex_lock(&tape->lock);
    first = !tape->finished;
    if (first) {
        struct record end = { .kind = TAPE_KIND_END,
                              .seq = tape->next_seq,
                              .time_ms = clock_wall_ms(),
                              .value = tape->capped ? 1 : 0 };

        add_record(tape, &end, "");
        tape->finished = true;
        reader_wake_all(tape);
    }
    (void)pthread_mutex_unlock(&tape->lock);
    if (first) {
        journal_file_soon(tape->journal, tape);
    }
}

uint64_t tape_count(struct tape *tape)
{
    uint64_t count;

    (void)pthread_mutex_lock(&tape->lock);
    count = tape->next_seq;
    (void)pthread_mutex_unlock(&tape->lock);
    return count;
}

bool tape_is_finished(struct tape *tape)
{
    bool finished;

    (void)pthread_mutex_lock(&tape->lock);
    finished = tape->finished;
    (void)pthread_mutex_unlock(&tape->lock);
    return finished;
}

bool tape_is_capped(struct tape *tape)
{
    bool capped;

    (void)pthread_mutex_lock(&tape->lock);
    capped = tape->capped;
    (void)pthread_mutex_unlock(&tape->lock);
    return capped;
}

uint64_t tape_bytes_of(struct tape *tape, uint32_t kind)
{
    uint64_t bytes;

    (void)pthread_mutex_lock(&tape->lock);
    bytes = kind < TAPE_KIND_MAX ? tape->bytes_of[kind] : 0;
    (void)pthread_mutex_unlock(&tape->lock);
    return bytes;
}
