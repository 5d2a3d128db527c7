/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader: one reading of a tape, from any seq on, while it grows or long after. A reader belongs to
 * one thread at a time; any number of them read one tape without holding up its writer.
 */
#ifndef KERND_JOURNAL_READER_H
#define KERND_JOURNAL_READER_H

#include <stdint.h>

#include "lib/journal/tape.h"

struct reader;

enum reader_state {
    READER_EVENT, /* *ret_event is the next one */
    READER_WAIT,  /* none yet; the reader's wake is called, once, when to ask again */
    READER_END,   /* the last one was told; none will come */
    READER_LOST,  /* as READER_END, but the log was never finished: its server was killed */
};

/*
 * From the event with this seq on; one that is not there yet is waited for. Holds a reference to
 * the tape. The caller calls reader_free.
 *
 * wake (NULL for who does not wait) is called on the thread that appends or finishes, with the tape
 * locked: it must be quick, and call nothing of tape.h or reader.h.
 */
struct reader *reader_new(struct tape *tape, uint64_t seq, void (*wake)(void *context),
                          void *context);

/* The event's data is good until the next call. */
enum reader_state reader_next(struct reader *reader, struct tape_event *ret_event);

/* After this, wake is not called any more, nor running. NULL is fine. */
void reader_free(struct reader *reader);

#endif
