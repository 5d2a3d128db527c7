/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape_internal: the body of a tape, for lib/journal alone.
 *
 * Bytes of the log: [0, filed) are in its file, [filed, filed + memory.size) in memory. Records
 * never lie across that border. A short log has no file: filed is 0, all of it is in memory, and
 * its first `bound` bytes are in a binder, too. The lock guards everything that changes.
 */
#ifndef KERND_JOURNAL_TAPE_INTERNAL_H
#define KERND_JOURNAL_TAPE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/journal/binder.h"
#include "lib/journal/record.h"
#include "lib/journal/tape.h"

#define TAPE_ID_SIZE 65
#define TAPE_SPILL ((size_t)256 * 1024)
#define TAPE_MEMORY_MAX ((size_t)1 << 30) /* of the buffer: one record, however large, fits */

/* The record that ends a finished log; it is no event. value: 1 if events were dropped. */
#define TAPE_KIND_END UINT32_C(0xffff)

/* A place to start reading from, one for about every 64 KiB of log. */
struct tape_mark {
    uint64_t seq;
    uint64_t offset;
};

struct journal;
struct reader;

struct tape {
    atomic_int references;
    struct journal *journal;
    char id[TAPE_ID_SIZE];

    pthread_mutex_t lock;
    int fd; /* -1: no file of its own */
    uint64_t filed;
    struct buf memory;
    size_t bound; /* bytes of memory; they don't change any more */
    struct binder_place place;
    atomic_uint_least64_t binder; /* place.number, for the journal's expiry */
    size_t last; /* offset in memory of the last record; valid while memory is not empty */
    uint64_t max_bytes;
    uint64_t next_seq;
    uint64_t read_seq; /* events below it were seen by a reader */
    uint64_t bytes_of[TAPE_KIND_MAX];
    struct tape_mark *marks;
    size_t mark_count;
    bool capped;
    bool finished;
    bool live;     /* started by this server, and may still grow */
    bool saving;   /* in the filer's list of those to save */
    bool unwanted; /* it is not to be written any more */
    struct reader *readers;

    struct tape *next;         /* the journal's table, under the journal's lock */
    struct tape *next_to_file; /* the filer's queue */
    struct tape *next_to_save; /* the filer's other one */
    int64_t save_deadline;     /* clock.h */
};

/* One reference. */
struct tape *tape_new(struct journal *journal, const char *id, uint64_t max_bytes);

/* A tape of what a file holds; takes fd over. A torn end is left out. */
struct tape *tape_load(struct journal *journal, const char *id, int fd);

/* A tape of what a binder holds; takes the bytes. */
struct tape *tape_load_short(struct journal *journal, const char *id, struct buf *log);

/*
 * Under the lock: writes what is in memory alone to a binder, or, of a log that is longer, moves it
 * to its file, which is made if need be. 0 or -1, errno.
 */
int tape_spill(struct tape *tape);

/* Under the lock: nothing of it is to be found by others any more. */
void tape_erase(struct tape *tape);

/*
 * Under the lock: the same, but with no room on the disk what is in memory stays there, and no more
 * output comes.
 */
void tape_save(struct tape *tape);

/* Adds a mark for an event at this offset if the last one is far away. */
void tape_mark(struct tape *tape, uint64_t seq, uint64_t offset);

#endif
