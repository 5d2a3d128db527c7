/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filer: the thread that writes ended logs to their files, off everybody's latency path. For
 * lib/journal alone; any thread.
 */
#ifndef KERND_JOURNAL_FILER_H
#define KERND_JOURNAL_FILER_H

#include <stdint.h>

#include "lib/base/err.h"

struct filer;
struct journal;
struct tape;

/* NULL with err if the thread can't be made. */
struct filer *filer_new(struct journal *journal, struct err *err);

/* Writes what is queued, ends the thread. NULL is fine. */
void filer_free(struct filer *filer);

/* An ended log. Takes a reference of its own. */
void filer_submit(struct filer *filer, struct tape *tape);

/*
 * A log that goes on has something that is not in its file: it will be soon, so that a crash costs
 * no more than the last moment. Under the tape's lock. Takes a reference of its own.
 */
void filer_save_later(struct filer *filer, struct tape *tape);

/* Waits until all that was submitted before is written or given up. */
void filer_flush(struct filer *filer);

/* Logs given up since the start. */
uint64_t filer_failed(struct filer *filer);

#endif
