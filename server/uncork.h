/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uncork: keeps large files flowing.
 *
 * libmicrohttpd 0.9.75 sets TCP_CORK (tcp(7)) before it sends a file, and leaves it on until the
 * last piece. A corked socket holds each piece's end back for the next one: measured over loopback,
 * sender and receiver together spend 20 % more processor time on it. It tells nobody when it does
 * so, and does it once a reply: hence three looks, soon after the reply was queued. One that comes
 * too early or never only costs speed.
 */
#ifndef KERND_SERVER_UNCORK_H
#define KERND_SERVER_UNCORK_H

#include <stdint.h>

#include "lib/base/alarm.h"

#define UNCORK_LOOKS 3

struct uncork_look {
    struct alarm_entry entry;
    int fd;
};

/* Embedded in who sends; zeroed before its first use. */
struct uncork {
    struct uncork_look looks[UNCORK_LOOKS];
};

/* A file of that size begins to be sent on a TCP socket; small ones are left alone. */
void uncork_begin(struct uncork *uncork, struct alarm *alarm, int fd, uint64_t size);

/* To be called before the socket is closed or used for the next reply. */
void uncork_end(struct uncork *uncork, struct alarm *alarm);

#endif
