/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_internal: what a tape does for its readers, for lib/journal alone.
 */
#ifndef KERND_JOURNAL_READER_INTERNAL_H
#define KERND_JOURNAL_READER_INTERNAL_H

struct tape;

/* Under the tape's lock: calls the wake of every reader that waits, once. */
void reader_wake_all(struct tape *tape);

#endif
