/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle: since when a daemon has had nothing to do, and whether that is long enough to leave. Main
 * thread.
 */
#ifndef KERND_SERVER_IDLE_H
#define KERND_SERVER_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/config.h"

struct idle {
    double limit_s;  /* 0: it never leaves */
    bool is_awaited; /* by the client that started it, which has not come yet */
    int64_t since;   /* clock.h */
};

/*
 * Starts to count. Without idle_exit the daemon leaves after five minutes if somebody starts it
 * again when it is needed: systemd, whose sockets it inherited, or the clients (on_demand). Such a
 * client looks at intervals whether it can connect: until it comes the limit is half a minute at
 * least.
 */
void idle_init(struct idle *idle, const struct config *config, bool is_activated);

/* There is, or just was, something to do. */
void idle_touch(struct idle *idle);

/* Somebody came: it is not awaited any more. */
void idle_meet(struct idle *idle);

/* Has there been nothing to do for long enough? */
bool idle_is_over(const struct idle *idle);

/* For epoll_wait(2): at most `longest` (-1: for ever), but not past the moment of leaving. */
int idle_wait_ms(const struct idle *idle, int longest);

#endif
