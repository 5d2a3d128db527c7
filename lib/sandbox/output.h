/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output: what a program wrote to one stream, byte for byte, while it runs and afterwards.
 */
#ifndef KERND_SANDBOX_OUTPUT_H
#define KERND_SANDBOX_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/sandbox/session.h"

struct output;
struct sandbox;

/*
 * The caller calls output_close. NULL with EXECUTION_NOT_FOUND, EVENTS_EXPIRED. Any thread but the
 * event one.
 */
struct output *output_open(struct sandbox *sandbox, const struct session_actor *actor,
                           const char *id, bool is_stderr, struct err *err);

/* How much there was when it was opened. */
uint64_t output_size(const struct output *output);

/* Copies up to size bytes from this offset on. How many; 0: there are none. One thread at a time.
 */
size_t output_read(struct output *output, uint64_t offset, void *out, size_t size);

void output_close(struct output *output); /* NULL is fine */

#endif
