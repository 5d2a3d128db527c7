/* SPDX-License-Identifier: Apache-2.0 */
/*
 * squeeze: bytes into a file by way of a second thread, which compresses, hashes and writes them
 * while the first one reads on. Reading many small files takes about half as long as compressing
 * them at level 1, so this is what `tar | gzip` gains by being two processes.
 *
 * Memory is flat: whoever adds waits while four pieces of 256 KiB are still to be taken. Each
 * squeeze belongs to one thread.
 */
#ifndef KERND_WORK_SQUEEZE_H
#define KERND_WORK_SQUEEZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"

struct squeeze;

struct squeeze_options {
    int out;            /* written to, borrowed */
    bool gzip;          /* level 1, no time of day: the same bytes give the same file */
    uint64_t max_bytes; /* of what is written: STORE_FULL above; 0: no bound */
};

struct squeeze_result {
    uint64_t bytes; /* written */
    char digest[HASH_HEX_SIZE];
};

/* 0, or -1 IO: there is no thread for it. */
int squeeze_open(const struct squeeze_options *options, struct squeeze **ret_squeeze,
                 struct err *err);

/* Never fails; what is added after a failure goes nowhere. */
void squeeze_add(struct squeeze *squeeze, const void *data, size_t size);

/* What went wrong so far. 0, or -1 STORE_FULL, IO. */
int squeeze_check(struct squeeze *squeeze, struct err *err);

/* From here on nothing is written: the file is not wanted any more. */
void squeeze_abort(struct squeeze *squeeze);

/* Waits until all is written; frees in any case. 0, or -1 as squeeze_check (IO after an abort). */
int squeeze_close(struct squeeze *squeeze, struct squeeze_result *ret_result, struct err *err);

#endif
