/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: know every connection, its peer and its deadline; end those that take too long.
 * Owns: the records; the sockets are libmicrohttpd's.
 * Threads: event (make, change, free), main (tick, each).
 * May include: server, lib/base.
 */
#include "server/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "server/exchange.h"
#include "server/reply.h"

#define HURRY_S 0.3

static void read_local_address(struct connection *connection)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } local = { .any = { .sa_family = AF_UNSPEC } };
    socklen_t size = sizeof(local);
    char text[INET6_ADDRSTRLEN] = "";

    (void)getsockname(connection->fd, &local.any, &size);
    if (local.any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &local.v4.sin_addr, text, sizeof(text));
        (void)snprintf(connection->address, sizeof(connection->address), "%s", text);
        connection->port = ntohs(local.v4.sin_port);
    } else if (local.any.sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &local.v6.sin6_addr, text, sizeof(text));
        (void)snprintf(connection->address, sizeof(connection->address), "[%s]", text);
        connection->port = ntohs(local.v6.sin6_port);
    }
    connection->tcp = local.any.sa_family != AF_UNIX;
}

static void read_peer(struct connection *connection)
{
    struct ucred peer = { .pid = 0 };
    socklen_t size = sizeof(peer);

    if (!connection->tcp &&
        getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
        connection->trusted = true;
        connection->pid = peer.pid;
    }
}

struct connection *connection_new(struct edge *edge, int fd)
{
    struct connection *connection = alloc_zero(1, sizeof(*connection));

    connection->fd = fd;
    read_local_address(connection);
    read_peer(connection);
    connection_expect_head(edge, connection);
    (void)pthread_mutex_lock(&edge->lock);
    connection->next = edge->connections;
    if (connection->next != NULL) {
        connection->next->previous = connection;
    }
    edge->connections = connection;
    (void)pthread_mutex_unlock(&edge->lock);
    return connection;
}

void connection_free(struct edge *edge, struct connection *connection)
{
    (void)pthread_mutex_lock(&edge->lock);
    if (connection->next != NULL) {
        connection->next->previous = connection->previous;
    }
    if (connection->previous != NULL) {
        connection->previous->next = connection->next;
    } else {
        edge->connections = connection->next;
    }
    (void)pthread_mutex_unlock(&edge->lock);
    free(connection);
}

void connection_set_exchange(struct edge *edge, struct connection *connection,
                             struct exchange *exchange)
{
    (void)pthread_mutex_lock(&edge->lock);
    connection->exchange = exchange;
    (void)pthread_mutex_unlock(&edge->lock);
}

void connection_place(const struct connection *connection, const struct edge *edge,
                      struct http_guard_place *ret_place)
{
    *ret_place = (struct http_guard_place){
        .tcp = connection->tcp,
        .port = connection->port,
        .address = connection->tcp ? connection->address : NULL,
        .hosts = edge->hosts,
    };
}

/* ---- deadlines ---- */

void connection_expect(struct connection *connection, double seconds)
{
    atomic_store(&connection->deadline, clock_deadline_after_s(seconds));
}

void connection_expect_head(const struct edge *edge, struct connection *connection)
{
    connection_expect(connection, edge->request_timeout_s);
}

void connection_wait(struct connection *connection)
{
    atomic_store(&connection->deadline, CLOCK_NEVER);
}

void connection_progress(struct connection *connection, uint64_t bytes, double bytes_per_s)
{
    double bonus_ns = (double)bytes / bytes_per_s * (double)CLOCK_NS_PER_S;
    int64_t deadline = atomic_load(&connection->deadline);

    if (deadline != CLOCK_NEVER) {
        atomic_store(&connection->deadline, deadline + (int64_t)bonus_ns);
    }
}

/* A request that is not complete by the time the daemon stops has not begun; no need to wait for
 * it. */
static void hurry(struct connection *connection)
{
    int64_t soon = clock_deadline_after_s(HURRY_S);
    int64_t deadline = atomic_load(&connection->deadline);

    if (connection->exchange != NULL &&
        atomic_load(&connection->exchange->input) == EXCHANGE_INPUT_CLOSED) {
        return;
    }
    if (deadline != CLOCK_NEVER && deadline > soon) {
        atomic_store(&connection->deadline, soon);
    }
}

/* Under edge's lock, so that the socket is still the connection's. */
static void expire(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;

    connection_wait(connection);
    if (exchange != NULL && exchange_claim(exchange, EXCHANGE_INPUT_EXPIRED)) {
        reply_expired(exchange);
    }
    (void)shutdown(connection->fd, SHUT_RDWR);
}

void connection_tick(struct edge *edge)
{
    (void)pthread_mutex_lock(&edge->lock);
    for (struct connection *at = edge->connections; at != NULL; at = at->next) {
        if (atomic_load(&edge->draining)) {
            hurry(at);
        }
        if (clock_passed(atomic_load(&at->deadline))) {
            expire(at);
        }
    }
    (void)pthread_mutex_unlock(&edge->lock);
}

void connection_each(struct edge *edge, void (*each)(struct exchange *exchange, void *context),
                     void *context)
{
    struct exchange **found = NULL;
    size_t count = 0;

    (void)pthread_mutex_lock(&edge->lock);
    for (struct connection *at = edge->connections; at != NULL; at = at->next) {
        if (at->exchange != NULL) {
            found = alloc_resize(found, count + 1, sizeof(struct exchange *));
            found[count++] = exchange_ref(at->exchange);
        }
    }
    (void)pthread_mutex_unlock(&edge->lock);
    for (size_t i = 0; i < count; i++) {
        each(found[i], context);
        exchange_unref(found[i]);
    }
    free(found);
}
