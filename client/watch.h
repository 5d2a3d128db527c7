/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch: an execution from its request to its end: what it prints, what it is typed, and the
 * signals that are meant for it. For one thread.
 *
 * SIGINT and SIGTERM are the execution's meanwhile. The first is passed on to the program (of a
 * cell: interrupts it), the second ends it, the third gives up on the answer.
 */
#ifndef KERND_CLIENT_WATCH_H
#define KERND_CLIENT_WATCH_H

#include <stdbool.h>

#include "client/ask.h"
#include "client/show.h"
#include "lib/base/buf.h"

struct watch {
    struct ask *ask;        /* borrowed, as all pointers here */
    const char *target;     /* of the request that starts or follows it */
    const struct buf *body; /* JSON; NULL: it is followed with GET */
    const char *execution;  /* its id */
    const char *kernel;     /* path of its kernel, NULL: it is no cell */
    struct show *show;      /* NULL: print the result as it is */
    bool raw;               /* print the events as they are instead */
    struct buf *input;      /* the start of standard input, the rest is passed on; NULL: none */
    bool leave;             /* signals end the watching, not the execution */
};

/* The exit status to end with, or -1 as functions of ask. */
int watch_run(const struct watch *watch);

#endif
