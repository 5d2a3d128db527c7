/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection: one client's socket while libmicrohttpd serves it: who the peer is, where it arrived,
 * and until when it must have sent what it is sending.
 *
 * libmicrohttpd's own time-out ends a connection after a silence; a peer that sends a byte now and
 * then would live for ever. So each connection has an absolute deadline as well, which the event
 * thread sets and the main thread's tick enforces.
 */
#ifndef KERND_SERVER_CONNECTION_H
#define KERND_SERVER_CONNECTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/edge.h"
#include "server/http_guard.h"

struct exchange;

struct connection {
    struct connection *next; /* edge's list */
    struct connection *previous;
    struct exchange *exchange; /* the one going on, NULL between two; under edge.lock */
    _Atomic int64_t deadline;  /* clock.h */
    int fd;                    /* libmicrohttpd's; open as long as this is in the list */
    bool tcp;
    bool trusted; /* a Unix socket's peer; its user was checked when it was accepted */
    pid_t pid;    /* of that peer, at the time it connected */
    uint16_t port;
    char address[64]; /* local address as in a URL, "" for Unix */
};

/* Without any byte either way a connection is closed; with a slow reader of a stream, later. */
#define CONNECTION_SILENCE_S 30
#define CONNECTION_STREAM_SILENCE_S 600

/* Event thread: at the start and at the end of libmicrohttpd's connection. */
struct connection *connection_new(struct edge *edge, int fd);
void connection_free(struct edge *edge, struct connection *connection);

/* Which exchange goes on; NULL when it is over. Event thread. */
void connection_set_exchange(struct edge *edge, struct connection *connection,
                             struct exchange *exchange);

/* The place for the guard. */
void connection_place(const struct connection *connection, const struct edge *edge,
                      struct http_guard_place *ret_place);

/* Gives the peer seconds from now, or (connection_wait) all the time it wants. Event thread. */
void connection_expect(struct connection *connection, double seconds);
void connection_wait(struct connection *connection);

/* The time for the next request's head, idleness before it included. */
void connection_expect_head(const struct edge *edge, struct connection *connection);

/* Lengthens a deadline by the time that bytes may take at a rate; event thread. */
void connection_progress(struct connection *connection, uint64_t bytes, double bytes_per_s);

/*
 * Ends every connection whose deadline has passed: one whose exchange was still being read gets its
 * answer (exchange_expire), all are shut down, so that libmicrohttpd closes them. Main thread.
 */
void connection_tick(struct edge *edge);

/*
 * Calls back for every exchange that goes on, each with a reference that is dropped afterwards and
 * without a lock. Main thread.
 */
void connection_each(struct edge *edge, void (*each)(struct exchange *exchange, void *context),
                     void *context);

#endif
