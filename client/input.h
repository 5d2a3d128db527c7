/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input: standard input on its way to a program. For one thread.
 */
#ifndef KERND_CLIENT_INPUT_H
#define KERND_CLIENT_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/ask.h"
#include "lib/base/buf.h"

/* What a request may hold of it: short input needs no calls of its own. */
#define INPUT_SHORT_MAX ((size_t)1 << 20)

/*
 * Reads what is there already, without waiting, into out (whose maximum is INPUT_SHORT_MAX). True:
 * that was all of it; false: more may come, for an input.
 */
bool input_read_short(struct buf *out);

struct input {
    struct buf *waiting; /* read, not passed on yet; NULL: there is no input */
    bool ended;          /* its end was read */
    bool done;           /* its end was passed on, or nobody takes it any more */
    int64_t retry;       /* not before (clock.h) */
};

/* start: read already, borrowed; NULL: no input is passed on. */
void input_begin(struct input *input, struct buf *start);

/* The descriptor to wait for, -1: none now. */
int input_fd(const struct input *input);

/* For poll(2): until there is something to be passed on again; -1: never. */
int input_wait_ms(const struct input *input);

/* Reads once. */
void input_read(struct input *input);

/* Passes on what waits, as far as the server takes it now. */
void input_pass_on(struct input *input, const struct ask *ask, const char *execution);

#endif
