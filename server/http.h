/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http: the HTTP server: libmicrohttpd, the loop that runs it, and what is around it.
 *
 * The main thread accepts and hands sockets over, so that limits and peer checks come before
 * libmicrohttpd, several listening sockets need one loop, and stopping to accept is closing
 * them. Main thread for all functions.
 */
#ifndef KERND_SERVER_HTTP_H
#define KERND_SERVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "lib/base/cancel.h"
#include "lib/base/err.h"
#include "lib/base/pool.h"
#include "server/token.h"

struct http;

/* All borrowed until http_stop. */
struct http_config {
    struct api *api;
    struct pool *lane; /* quick work: decoding, looking up, submitting */
    const struct token *token;
    const struct strv *hosts; /* further names for the Host field */
    const char *spool_dir;    /* for uploads on their way */
    uint64_t upload_max;      /* bytes */
    size_t connections_max;
    double request_timeout_s; /* for a head, and for a short body */
};

/* Starts the event threads. 0, or -1 with err. Signals must be blocked already. */
int http_start(const struct http_config *config, struct http **ret_http, struct err *err);

/*
 * Takes up to a few dozen waiting clients of a listening socket; how many there were. A Unix
 * socket's peer must be this user or root; above the limit of connections a client is told so and
 * sent away. -1 when the process has no descriptor left: wait before the next call.
 */
int http_accept(struct http *http, int listener);

/* To wait for with EPOLLIN: clients that hung up while they waited; then http_dispatch. */
int http_fd(const struct http *http);
void http_dispatch(struct http *http);

/* Ends connections that take too long; to be called every half second while http_busy. */
void http_tick(struct http *http);

/* Connections there are, and requests begun but not yet answered to the last byte. */
size_t http_connections(const struct http *http);
size_t http_exchanges(const struct http *http);

/*
 * No request is under way, and no connection counts as suspended, as http_stop wants it: one may be
 * resumed, answered and over before whoever resumed it has counted that.
 */
bool http_is_quiet(const struct http *http);

/* From now on every new request is refused with 503 and its connection closed. */
void http_refuse(struct http *http);

/* Cancels whatever is going on (exchange_cancel with SHUTDOWN). */
void http_cancel(struct http *http);

/*
 * Stops the event threads and closes all connections. No connection may be suspended any more: the
 * lane and the sandbox have ended by now; libmicrohttpd would abort the process, so this does,
 * after a line in the log.
 */
void http_stop(struct http *http);

#endif
