/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal: the event logs of all executions, bounded by age and bytes. Long ones have a file each,
 * short ones share files, which are deleted together: at most a 28th of the maximum age late.
 *
 * Logs of running executions are kept in a table and may be in memory only; a thread writes those
 * of ended ones to their files. Any thread.
 */
#ifndef KERND_JOURNAL_JOURNAL_H
#define KERND_JOURNAL_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/journal/tape.h"

struct journal;

struct journal_config {
    const char *directory;    /* absolute; made with mode 0700 if missing */
    uint64_t tape_max_bytes;  /* of one log; 0: 160 MiB */
    uint64_t total_max_bytes; /* of all files; 0: 4 GiB */
    int64_t age_max_ms;       /* since the end; 0: 7 days */
};

/* 0, or -1 IO, STORE_FULL. */
int journal_open(const struct journal_config *config, struct journal **ret_journal,
                 struct err *err);

/* Writes what is in memory to files first. No tape may be in use any more. NULL is fine. */
void journal_close(struct journal *journal);

/*
 * A new log for an execution (an id as id_valid wants it, which never had one). The caller has one
 * reference, and calls tape_finish in the end. NULL with EXECUTION_EXISTS when a log by that name
 * is in the table.
 */
struct tape *journal_start(struct journal *journal, const char *id, struct err *err);

/* The same for an id that may have had one before, which is deleted. NULL also with IO, STORE_FULL.
 */
struct tape *journal_start_again(struct journal *journal, const char *id, struct err *err);

/*
 * The log of an execution that runs, has ended, or was cut short by a crash, with one reference for
 * the caller. NULL with EVENTS_EXPIRED when there is none, IO.
 */
struct tape *journal_find(struct journal *journal, const char *id, struct err *err);

/* The log of this tape, which has ended, is not kept. Who reads it may go on. */
void journal_drop(struct journal *journal, struct tape *tape);

struct journal_usage {
    size_t files;
    uint64_t bytes;  /* on disk */
    size_t expired;  /* files deleted by this call */
    uint64_t failed; /* logs that could not be written since the start (the disk was full) */
};

/* Deletes files that are too old, then the oldest above the total. For a janitor's thread. */
void journal_expire(struct journal *journal, int64_t now_ms, struct journal_usage *ret_usage);

/* Waits until the logs that have ended are in files. */
void journal_flush(struct journal *journal);

#endif
