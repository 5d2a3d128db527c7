/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the server's edge around one socket pair.
 * Owns: libmicrohttpd's daemon, the lane, the sockets.
 * Threads: the test's, and those of what it starts.
 * May include: anything.
 */
#include "tests/unit/edgekit.h"

#include <dirent.h>
#include <microhttpd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/fd.h"
#include "lib/base/pool.h"
#include "server/body.h"
#include "server/exchange.h"
#include "server/hangup.h"
#include "server/intake.h"
#include "server/loop.h"
#include "server/reply.h"

struct edge edgekit_edge;

static const struct api_route *served;
static int client = -1;
static size_t descriptors; /* of the process, before all this */

static size_t count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **slot,
                          enum MHD_ConnectionNotificationCode code)
{
    (void)context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *slot = connection_new(
            &edgekit_edge,
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
    } else {
        connection_free(&edgekit_edge, *slot);
    }
}

static void *on_target(void *context, const char *target, struct MHD_Connection *mhd)
{
    struct connection *connection =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    struct exchange *exchange = exchange_new(&edgekit_edge, connection, mhd, target);

    (void)context;
    connection_set_exchange(&edgekit_edge, connection, exchange);
    return exchange;
}

/* In place of intake_head, which would look the route up. */
static int begin(struct exchange *exchange)
{
    exchange->call.route = served;
    exchange_set_phase(exchange, EXCHANGE_BODY);
    connection_expect(exchange->connection, 60);
    body_begin(exchange);
    atomic_store(&exchange->input, EXCHANGE_INPUT_OPEN);
    return 0;
}

static enum MHD_Result on_access(void *context, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *size, void **slot)
{
    struct exchange *exchange = *slot;
    enum exchange_phase phase = exchange_phase(exchange);
    int result;

    (void)context;
    (void)mhd;
    (void)url;
    (void)method;
    (void)version;
    if (phase == EXCHANGE_HEAD) {
        result = begin(exchange);
    } else if (phase == EXCHANGE_READY) {
        result = reply_queue(exchange);
    } else {
        result = *size > 0 ? intake_data(exchange, data, size) : intake_end(exchange);
    }
    return result == 0 ? MHD_YES : MHD_NO;
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    struct exchange *exchange = *slot;

    (void)context;
    (void)mhd;
    (void)code;
    connection_set_exchange(&edgekit_edge, exchange->connection, NULL);
    exchange_completed(exchange);
}

static void hold(void *target)
{
    (void)exchange_ref(target);
}

static void gone(void *target)
{
    exchange_cancel(target, CANCEL_CLIENT_GONE);
    exchange_unref(target);
}

static const struct hangup_calls calls = { .hold = hold, .gone = gone };

static struct MHD_Daemon *start_server(void)
{
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0,
                            NULL, NULL, on_access, NULL, MHD_OPTION_NOTIFY_CONNECTION,
                            on_connection, NULL, MHD_OPTION_URI_LOG_CALLBACK, on_target, NULL,
                            MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_END);
}

int edgekit_start(const struct api_route *route, const char *spool_dir)
{
    const struct sockaddr address = { .sa_family = AF_UNIX };
    int pair[2];

    descriptors = count_descriptors();
    served = route;
    memset(&edgekit_edge, 0, sizeof(edgekit_edge));
    (void)pthread_mutex_init(&edgekit_edge.lock, NULL);
    edgekit_edge.hangup = hangup_new(4, &calls, NULL);
    edgekit_edge.lane = pool_new("lane", 1, 8, NULL);
    edgekit_edge.request_timeout_s = 60;
    edgekit_edge.spool_dir = spool_dir;
    edgekit_edge.upload_max = (uint64_t)1 << 30;
    edgekit_edge.loop = loop_new(start_server(), NULL);
    if (edgekit_edge.loop == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return -1;
    }
    client = pair[0];
    return loop_add(edgekit_edge.loop, pair[1], &address, sizeof(sa_family_t)) == 0 ? client : -1;
}

void edgekit_stop(void)
{
    /* The lane first: whoever resumed a connection counts it off a moment later. */
    atomic_store(&edgekit_edge.stopping, true);
    pool_end(edgekit_edge.lane);
    assert_int_equal(atomic_load(&edgekit_edge.suspended), 0);
    loop_free(edgekit_edge.loop);
    pool_free(edgekit_edge.lane);
    assert_int_equal(atomic_load(&edgekit_edge.buffered), 0);
    fd_clear(&client);
    hangup_free(edgekit_edge.hangup);
    (void)pthread_mutex_destroy(&edgekit_edge.lock);
    assert_int_equal(count_descriptors(), descriptors);
}

int edgekit_send(const void *data, size_t size)
{
    return fd_write_full(client, data, size);
}

char *edgekit_receive(const char *end)
{
    struct buf all = BUF_INIT((size_t)1 << 20);
    char piece[4096];
    ssize_t size = 0;

    do {
        size = read(client, piece, sizeof(piece));
    } while (size > 0 && buf_append(&all, piece, (size_t)size) == 0 &&
             strstr(all.data, end) == NULL);
    return buf_take(&all, NULL);
}
