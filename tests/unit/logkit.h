/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logkit: what is written to standard error, where the log goes, between two calls. Of one thread;
 * no more than a pipe holds (64 KiB, pipe(7)).
 */
#ifndef KERND_TESTS_UNIT_LOGKIT_H
#define KERND_TESTS_UNIT_LOGKIT_H

void logkit_start(void);

/* All of it since logkit_start; the caller frees. */
char *logkit_end(void);

#endif
