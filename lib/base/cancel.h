/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cancel: a one-way "please stop" that any thread may fire and a poll loop can wait for.
 *
 * Embedded in the object whose work it stops (an exchange, an execution). The first reason wins.
 */
#ifndef KERND_BASE_CANCEL_H
#define KERND_BASE_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "lib/base/err.h"

enum cancel_reason {
    CANCEL_NONE = 0,
    CANCEL_REQUESTED,   /* a DELETE, an interrupt that had to kill */
    CANCEL_CLIENT_GONE, /* the caller hung up */
    CANCEL_SESSION_GONE,
    CANCEL_KERNEL_GONE, /* of a cell: its interpreter is ended for good */
    CANCEL_SHUTDOWN,
};

struct cancel {
    int fd; /* eventfd, readable (never read) once fired; -1: it can't be waited for */
    atomic_int reason;
};

/* 0, or -1 with err IO (no descriptor left). */
int cancel_init(struct cancel *cancel, struct err *err);
/* For work that only asks now and then: without a descriptor, so it can't fail. */
void cancel_init_to_ask(struct cancel *cancel);
void cancel_done(struct cancel *cancel);

/* NULL is a token that never fires, here and below. */

/* Any thread; idempotent. */
void cancel_fire(struct cancel *cancel, enum cancel_reason reason);

enum cancel_reason cancel_get(const struct cancel *cancel);
/* For poll(2): -1 for NULL, or without a descriptor (poll ignores it). */
int cancel_poll_fd(const struct cancel *cancel);

const char *cancel_reason_text(enum cancel_reason reason);

#endif
