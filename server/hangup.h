/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hangup: notices that a client left while its connection is suspended.
 *
 * libmicrohttpd does not look at suspended connections at all. Between suspend and resume the
 * socket can't be closed, so that it can be watched here for EPOLLRDHUP (epoll_ctl(2)). A client
 * that shuts down its sending side while it waits looks the same and is treated as gone.
 */
#ifndef KERND_SERVER_HANGUP_H
#define KERND_SERVER_HANGUP_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct hangup;

/* What is done with a target whose client left; called by hangup_dispatch on its thread. */
struct hangup_calls {
    void (*hold)(void *target); /* under the table's lock: keep it alive until gone returns */
    void (*gone)(void *target); /* without the lock; gives up what hold took */
};

#define HANGUP_NONE UINT64_C(0) /* a watch that does not exist */

/* capacity: watches at the same time. NULL with err IO. */
struct hangup *hangup_new(size_t capacity, const struct hangup_calls *calls, struct err *err);
void hangup_free(struct hangup *hangup);

/* To wait for with EPOLLIN; then call hangup_dispatch. Main thread. */
int hangup_fd(const struct hangup *hangup);
void hangup_dispatch(struct hangup *hangup);

/*
 * Watches a socket until hangup_unwatch or until its client is gone, which is told once.
 * HANGUP_NONE when the table is full or the kernel has no room: the target is then not watched. Any
 * thread.
 */
uint64_t hangup_watch(struct hangup *hangup, int fd, void *target);

/*
 * Ends a watch; the descriptor must still be open. After return hold is not called for it; gone may
 * be running. Any thread. HANGUP_NONE is fine.
 */
void hangup_unwatch(struct hangup *hangup, uint64_t watch);

#endif
