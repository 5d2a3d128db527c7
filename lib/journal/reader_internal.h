/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_internal: what a tape does for its readers, for lib/journal alone.
 */
#ifndef KERND_JOURNAL_READER_INTERNAL_H
#define KERND_JOURNAL_READER_INTERNAL_H

#include <stdbool.h>

struct tape;

/* Under the tape's lock: is there one that wants to know of the next event? */
bool reader_any_waits(const struct tape *tape);

/* Under the tape's lock: calls the wake of every reader that waits, once. */
void reader_wake_all(struct tape *tape);

#endif
