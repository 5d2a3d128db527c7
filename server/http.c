/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: run libmicrohttpd and route its callbacks.
 * Owns: the loop, the edge, the hang-up table.
 * Threads: main; the callbacks (on_...) are the event threads', one at a time, but that main makes
 * the first one of a connection and, at the end, the last.
 * May include: server, api.h, lib/base, libmicrohttpd.
 */
#include "server/http.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alarm.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "server/accept.h"
#include "server/connection.h"
#include "server/edge.h"
#include "server/exchange.h"
#include "server/hangup.h"
#include "server/intake.h"
#include "server/loop.h"
#include "server/reply.h"

#if MHD_VERSION < 0x00097500
#error "libmicrohttpd 0.9.75 or later is needed"
#endif

/*
 * From 1.0 on it unfolds the lines of a field (RFC 9112, 5.2) unless it is told to be strict.
 * Before, it made another field of what is behind the fold, which http_guard.c refuses.
 */
#if MHD_VERSION >= 0x01000000
#define STRICTLY MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1,
#else
#define STRICTLY
#endif

#define SILENCE_S 30 /* a connection without any byte either way is closed */

struct http {
    struct edge edge;
};

/* ---- callbacks of libmicrohttpd ---- */

static void on_log(void *context, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* It tries TCP options on Unix sockets and tells that they have none. */
static bool is_noise(const char *format)
{
    return strncmp(format, "Setting TCP_", 12) == 0 || strncmp(format, "Failed to push", 14) == 0;
}

/* Its lines may hold bytes of clients; log_line escapes them. */
static void on_log(void *context, const char *format, va_list arguments)
{
    char text[256];
    int length;

    (void)context;
    if (!log_enabled(LOG_DEBUG) || is_noise(format)) {
        return;
    }
    length = vsnprintf(text, sizeof(text), format, arguments);
    if (length > 0 && length < (int)sizeof(text) && text[length - 1] == '\n') {
        text[length - 1] = '\0';
    }
    log_line(LOG_DEBUG, "libmicrohttpd", "text", text, NULL);
}

static void on_panic(void *context, const char *file, unsigned line, const char *reason)
{
    char number[16];

    (void)context;
    (void)snprintf(number, sizeof(number), "%u", line);
    log_line(LOG_ERROR, "libmicrohttpd gave up", "file", file, LOG_NUMBER "line", number, "reason",
             reason, NULL);
    abort();
}

/* Targets reach api as they came: it decodes each segment by itself, so that %2F and %00 stay data.
 */
static size_t on_unescape(void *context, struct MHD_Connection *mhd, char *text)
{
    (void)context;
    (void)mhd;
    return strlen(text);
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **slot,
                          enum MHD_ConnectionNotificationCode code)
{
    struct edge *edge = context;
    const union MHD_ConnectionInfo *info;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        *slot = connection_new(edge, info->connect_fd);
        api_count_connection(edge->api, 1);
    } else if (*slot != NULL) {
        connection_free(edge, *slot);
        *slot = NULL;
        api_count_connection(edge->api, -1);
        (void)atomic_fetch_sub(&edge->connection_count, 1);
    }
}

/* The request line has come. What is returned becomes the slot of the access callback. */
static void *on_target(void *context, const char *target, struct MHD_Connection *mhd)
{
    struct edge *edge = context;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *connection = info->socket_context;
    struct exchange *exchange = exchange_new(edge, connection, mhd, target != NULL ? target : "");

    connection_set_exchange(edge, connection, exchange);
    api_count_begin(edge->api);
    return exchange;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are libmicrohttpd's. */
static enum MHD_Result on_access(void *context, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *size, void **slot)
{
    struct exchange *exchange = *slot;
    int result = -1;

    (void)context;
    (void)mhd;
    (void)url;
    switch (exchange_phase(exchange)) {
    case EXCHANGE_HEAD:
        result = intake_head(exchange, method, version);
        break;
    case EXCHANGE_BODY:
    case EXCHANGE_REFUSED:
        result = *size > 0 ? intake_data(exchange, data, size) : intake_end(exchange);
        break;
    case EXCHANGE_READY:
        result = reply_queue(exchange);
        break;
    case EXCHANGE_AWAY:
    case EXCHANGE_REPLYING:
        break;
    }
    return result == 0 ? MHD_YES : MHD_NO;
}

static void log_exchange(struct exchange *exchange)
{
    const struct api_route *route = exchange->call.route;
    enum log_level level = exchange->status >= 500 ? LOG_INFO : LOG_DEBUG;
    bool has_left = cancel_get(&exchange->call.cancel) == CANCEL_CLIENT_GONE;
    char status[16];
    char ms[32];
    char sent[24];

    if (!log_enabled(level)) {
        return;
    }
    (void)snprintf(status, sizeof(status), "%d", exchange->status);
    (void)snprintf(ms, sizeof(ms), "%.3f",
                   clock_ms_between(exchange->call.received_ns, clock_mono_ns()));
    (void)snprintf(sent, sizeof(sent), "%llu", (unsigned long long)exchange->sent);
    /* The route's pattern, not the path: paths hold names of users' files. */
    log_line(level, "request", "id", exchange->request_id, "method",
             route != NULL ? exchange->method : NULL, "route",
             route != NULL ? api_route_pattern(route) : NULL, LOG_NUMBER "status", status,
             LOG_NUMBER "ms", ms, LOG_NUMBER "bytes", sent, "client", has_left ? "gone" : NULL,
             "traceparent", http_guard_trace(&exchange->head), "why",
             exchange->refusal.msg[0] != '\0' ? exchange->refusal.msg : NULL, NULL);
}

static void count_exchange(const struct edge *edge, const struct exchange *exchange)
{
    const struct api_exchange counted = { .route = exchange->call.route,
                                          .status = exchange->status,
                                          .duration_ns =
                                              clock_mono_ns() - exchange->call.received_ns,
                                          .received = exchange->received,
                                          .sent = exchange->sent };

    api_count_end(edge->api, &counted);
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    struct edge *edge = context;
    struct exchange *exchange = *slot;

    (void)mhd;
    (void)code; /* says nothing about delivery: a client that left while suspended is "completed" */
    if (exchange == NULL) {
        return;
    }
    *slot = NULL;
    uncork_end(&exchange->uncork, edge->alarm);
    connection_set_exchange(edge, exchange->connection, NULL);
    connection_expect_head(edge, exchange->connection);
    (void)MHD_set_connection_option(mhd, MHD_CONNECTION_OPTION_TIMEOUT,
                                    (unsigned)CONNECTION_SILENCE_S);
    log_exchange(exchange);
    count_exchange(edge, exchange);
    exchange_completed(exchange);
}

/* ---- callbacks of the hang-up table ---- */

static void hold_exchange(void *target)
{
    (void)exchange_ref(target);
}

static void exchange_gone(void *target)
{
    struct exchange *exchange = target;

    exchange_cancel(exchange, CANCEL_CLIENT_GONE);
    exchange_unref(exchange);
}

static const struct hangup_calls hangup_calls = { .hold = hold_exchange, .gone = exchange_gone };

/* ---- start and stop ---- */

static void edge_init(struct edge *edge, const struct http_config *config, struct hangup *hangup)
{
    edge->api = config->api;
    edge->lane = config->lane;
    edge->token = config->token;
    edge->hosts = config->hosts;
    edge->hangup = hangup;
    edge->spool_dir = config->spool_dir;
    edge->upload_max = config->upload_max;
    edge->connections_max = config->connections_max;
    edge->request_timeout_s = config->request_timeout_s;
    (void)pthread_mutex_init(&edge->lock, NULL);
    atomic_init(&edge->connection_count, 0);
    atomic_init(&edge->exchanges, 0);
    atomic_init(&edge->suspended, 0);
    atomic_init(&edge->buffered, 0);
    atomic_init(&edge->draining, false);
    atomic_init(&edge->stopping, false);
}

static struct MHD_Daemon *start_daemon(struct edge *edge)
{
    const unsigned flags =
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG;
    /*
     * Never to be reached: 0.9.75 leaves a mutex locked when it refuses a connection for its limit,
     * and stands still for ever. accept.c counts more exactly, and tells the client.
     */
    const unsigned limit = 2 * (unsigned)edge->connections_max + 1024;

    MHD_set_panic_func(on_panic, NULL);
    /* The logger first: it hears what the later options have to say. */
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_access, edge, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, edge, MHD_OPTION_URI_LOG_CALLBACK, on_target,
        edge, MHD_OPTION_NOTIFY_COMPLETED, on_completed, edge, MHD_OPTION_UNESCAPE_CALLBACK,
        on_unescape, NULL, MHD_OPTION_CONNECTION_LIMIT, limit, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)CONNECTION_SILENCE_S, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        STRICTLY MHD_OPTION_END);
}

static void http_free(struct http *http)
{
    hangup_free(http->edge.hangup);
    alarm_free(http->edge.alarm);
    (void)pthread_mutex_destroy(&http->edge.lock);
    free(http);
}

int http_start(const struct http_config *config, struct http **ret_http, struct err *err)
{
    struct hangup *hangup = hangup_new(config->connections_max, &hangup_calls, err);
    struct MHD_Daemon *daemon;
    struct http *http;

    if (hangup == NULL) {
        return -1;
    }
    http = alloc_zero(1, sizeof(*http));
    edge_init(&http->edge, config, hangup);
    http->edge.alarm = alarm_new(err);
    if (http->edge.alarm == NULL) {
        http_free(http);
        return -1;
    }
    daemon = start_daemon(&http->edge);
    if (daemon == NULL) {
        http_free(http);
        return err_set(err, ERR_INTERNAL, 0, "libmicrohttpd could not be started");
    }
    http->edge.loop = loop_new(daemon, err);
    if (http->edge.loop == NULL) {
        http_free(http);
        return -1;
    }
    *ret_http = http;
    return 0;
}

int http_accept(struct http *http, int listener)
{
    return accept_clients(&http->edge, listener);
}

int http_fd(const struct http *http)
{
    return hangup_fd(http->edge.hangup);
}

void http_dispatch(struct http *http)
{
    hangup_dispatch(http->edge.hangup);
}

void http_tick(struct http *http)
{
    connection_tick(&http->edge);
}

size_t http_connections(const struct http *http)
{
    return atomic_load(&http->edge.connection_count);
}

size_t http_exchanges(const struct http *http)
{
    return atomic_load(&http->edge.exchanges);
}

bool http_is_quiet(const struct http *http)
{
    return http_exchanges(http) == 0 && atomic_load(&http->edge.suspended) == 0;
}

void http_refuse(struct http *http)
{
    atomic_store(&http->edge.draining, true);
}

static void cancel_one(struct exchange *exchange, void *context)
{
    (void)context;
    exchange_cancel(exchange, CANCEL_SHUTDOWN);
}

void http_cancel(struct http *http)
{
    /* First: whoever begins to wait after it was looked at finds this. */
    atomic_store(&http->edge.stopping, true);
    connection_each(&http->edge, cancel_one, NULL);
}

void http_stop(struct http *http)
{
    size_t suspended = atomic_load(&http->edge.suspended);
    char count[24];

    if (suspended != 0) {
        (void)snprintf(count, sizeof(count), "%zu", suspended);
        log_line(LOG_ERROR, "requests were never finished", LOG_NUMBER "count", count, NULL);
        abort();
    }
    loop_free(http->edge.loop);
    http_free(http);
}
