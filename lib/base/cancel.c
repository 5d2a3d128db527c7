/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: tell a running piece of work, from any thread, to stop.
 * Owns: the event descriptor in each token.
 * Threads: fire and get from any; init and done by the owner alone.
 * May include: libc.
 */
#include "lib/base/cancel.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/fd.h"

int cancel_init(struct cancel *cancel, struct err *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0) {
        return err_set(err, ERR_IO, errno, "can't make an event descriptor: %s",
                       err_errno_text(errno));
    }
    cancel->fd = fd;
    atomic_init(&cancel->reason, CANCEL_NONE);
    return 0;
}

void cancel_init_to_ask(struct cancel *cancel)
{
    cancel->fd = -1;
    atomic_init(&cancel->reason, CANCEL_NONE);
}

void cancel_done(struct cancel *cancel)
{
    fd_clear(&cancel->fd);
}

void cancel_fire(struct cancel *cancel, enum cancel_reason reason)
{
    int none = CANCEL_NONE;
    uint64_t one = 1;
    ssize_t ignored = 0;

    if (cancel == NULL) {
        return;
    }
    /* Reason first: whoever the descriptor wakes must find it. */
    if (atomic_compare_exchange_strong(&cancel->reason, &none, (int)reason) && cancel->fd >= 0) {
        ignored = write(cancel->fd, &one, sizeof(one));
    }
    (void)ignored;
}

enum cancel_reason cancel_get(const struct cancel *cancel)
{
    if (cancel == NULL) {
        return CANCEL_NONE;
    }
    return (enum cancel_reason)atomic_load(&cancel->reason);
}

int cancel_poll_fd(const struct cancel *cancel)
{
    return cancel == NULL ? -1 : cancel->fd;
}

const char *cancel_reason_text(enum cancel_reason reason)
{
    switch (reason) {
    case CANCEL_NONE:
        return "not cancelled";
    case CANCEL_REQUESTED:
        return "cancelled on request";
    case CANCEL_CLIENT_GONE:
        return "the client hung up";
    case CANCEL_SESSION_GONE:
        return "the session was removed";
    case CANCEL_KERNEL_GONE:
        return "the kernel was restarted or removed";
    case CANCEL_SHUTDOWN:
        return "the server is shutting down";
    }
    return "unknown";
}
