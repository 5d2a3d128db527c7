/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body: where the bytes of a request's body go: into memory for JSON, into an unnamed file for
 * uploads, nowhere for routes without a body and for requests that are refused.
 */
#ifndef KERND_SERVER_BODY_H
#define KERND_SERVER_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct exchange;

#define BODY_DROP_MAX                                                          \
    ((uint64_t)64 << 20) /* bytes of a refused body that are read all the same \
                          */

/* The most that the exchange's route takes. Any thread. */
uint64_t body_limit(const struct exchange *exchange);

/* Before the first byte: makes room for a body whose length is known. Event thread. */
void body_begin(struct exchange *exchange);

/*
 * Takes all of the bytes; may suspend the connection while pieces go to disk. 0, or -1 with err
 * BODY_TOO_LARGE, QUEUE_FULL (the server's memory for bodies is used up), or as spool_take. Event
 * thread.
 */
int body_take(struct exchange *exchange, const char *data, size_t size, struct err *err);

/* Gives back what a body holds that nobody will read. Event thread. */
void body_forget(struct exchange *exchange);

#endif
