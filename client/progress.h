/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress: a line on standard error about a long transfer, where that is a terminal.
 */
#ifndef KERND_CLIENT_PROGRESS_H
#define KERND_CLIENT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *name; /* NULL: say nothing */
    uint64_t total;
    int64_t began; /* clock.h */
    int64_t told;
    bool shown;
};

/* name: borrowed, NULL for a silent one. total in bytes. */
void progress_begin(struct progress *progress, const char *name, uint64_t total);

/* So many bytes are done. Says nothing in the first half second, then at most ten times a second.
 */
void progress_moved(struct progress *progress, uint64_t done);

/* Wipes the line. */
void progress_end(struct progress *progress);

#endif
