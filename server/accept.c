/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: accept clients, check who they are, keep their number below the limit.
 * Owns: a client's socket until libmicrohttpd takes it.
 * Threads: main.
 * May include: server, lib/base, libmicrohttpd.
 */
#include "server/accept.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "server/loop.h"
#include "server/reply.h"

#define AT_ONCE 32

/* Sends a client away with a reply; its request is not read. */
static void send_away(int fd, enum err_code code, const char *why)
{
    struct err err = ERR_INIT;

    (void)err_set(&err, code, 0, "%s", why);
    reply_bare_problem(fd, &err);
    (void)shutdown(fd, SHUT_WR);
    fd_close(fd);
}

/* The directory of the socket keeps others out; this also holds when somebody opened it. */
static bool is_own_peer(int fd)
{
    struct ucred peer = { .pid = 0 };
    socklen_t size = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static void take(struct edge *edge, int fd, const struct sockaddr_storage *address, socklen_t size)
{
    const int on = 1;

    if (address->ss_family == AF_UNIX && !is_own_peer(fd)) {
        send_away(fd, ERR_FORBIDDEN, "this socket belongs to another user");
        return;
    }
    if (atomic_fetch_add(&edge->connection_count, 1) >= edge->connections_max) {
        (void)atomic_fetch_sub(&edge->connection_count, 1);
        send_away(fd, ERR_TOO_MANY_REQUESTS, "too many connections are open");
        return;
    }
    if (address->ss_family != AF_UNIX) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    /* Takes the socket over, and closes it if it can't be served. */
    if (loop_add(edge->loop, fd, (const struct sockaddr *)address, size) < 0) {
        (void)atomic_fetch_sub(&edge->connection_count, 1);
        log_line(LOG_WARNING, "a connection could not be taken", NULL);
    }
}

int accept_clients(struct edge *edge, int listener)
{
    int count = 0;

    while (count < AT_ONCE) {
        struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
        socklen_t size = sizeof(address);
        int fd =
            accept4(listener, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
            return -1;
        }
        if (fd < 0) {
            break;
        }
        take(edge, fd, &address, size);
        count++;
    }
    return count;
}
