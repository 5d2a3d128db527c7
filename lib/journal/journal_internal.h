/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_internal: what the rooms of lib/journal need of each other.
 *
 * Lock order: a tape's lock, then the journal's. The filer's queue has the journal's lock.
 */
#ifndef KERND_JOURNAL_JOURNAL_INTERNAL_H
#define KERND_JOURNAL_JOURNAL_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/journal/journal.h"

#define JOURNAL_TABLE_SIZE 256

struct binders;
struct filer;

struct journal {
    int directory;
    uint64_t tape_max_bytes;
    uint64_t total_max_bytes;
    int64_t age_max_ms;
    struct filer *filer;
    struct binders *binders;

    pthread_mutex_t lock;
    struct tape *table[JOURNAL_TABLE_SIZE]; /* one reference each */
};

/* Hands an ended log to the filer. */
void journal_file_soon(struct journal *journal, struct tape *tape);

/* See filer_save_later. */
void journal_save_later(struct journal *journal, struct tape *tape);

/* The log is in its file (or can't be): takes it out of the table. */
void journal_forget(struct journal *journal, struct tape *tape);

#endif
