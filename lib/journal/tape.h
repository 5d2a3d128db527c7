/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape: the event log of one execution, written while it runs, read by any number of readers.
 *
 * A short log stays in memory while anybody has the tape, and is written to a file that it shares
 * with others (binder.h); one of more than 16 KiB to its own. That happens behind the end of the
 * execution; of one that goes on some 20 ms after each event, and in pieces of 256 KiB; what a
 * reader is told is written before it is told. Written means in the page cache: the end of the
 * process loses none of it, that of the host may. Beyond the journal's maximum for one log, events
 * that may be dropped are, from the first that does not fit on. Reference-counted; any thread.
 * journal.h makes and finds tapes, reader.h reads them.
 */
#ifndef KERND_JOURNAL_TAPE_H
#define KERND_JOURNAL_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tape;

#define TAPE_KIND_MAX 64 /* kinds are numbers below it, with a meaning to the layer above only */

struct tape_event {
    uint32_t kind;
    bool droppable; /* written: may be dropped above the maximum. Read: false */
    bool joinable;  /* written: as below. Read: false */
    uint64_t value; /* what it means is up to the kind; of output: offset of its first byte */
    const void *data;
    size_t size;
    uint64_t seq;    /* set by the tape: 0, 1, 2 ... without holes */
    int64_t time_ms; /* set by the tape: wall clock */
};

struct tape *tape_ref(struct tape *tape);
void tape_unref(struct tape *tape); /* NULL is fine */

/*
 * Adds an event and wakes readers that wait. Copies. A joinable one may be joined to the one before
 * it: same kind, both small, within 20 ms, and not read by anyone yet. False if it was dropped.
 * Costs about a microsecond; a few more when it writes to the file: once in 256 KiB, and when a
 * reader waits.
 */
bool tape_append(struct tape *tape, const struct tape_event *event);

/* No event comes any more. Wakes readers. What is in memory is written soon. */
void tape_finish(struct tape *tape);

uint64_t tape_count(struct tape *tape);   /* events so far, the next seq */
bool tape_is_finished(struct tape *tape); /* false: it still grows, or its server was killed */
bool tape_is_capped(struct tape *tape);   /* events were dropped */

/* Bytes of data of all events of this kind so far. */
uint64_t tape_bytes_of(struct tape *tape, uint32_t kind);

#endif
