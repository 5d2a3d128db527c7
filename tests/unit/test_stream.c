/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streamed replies over a real connection: every byte arrives, a quiet stream sleeps and is woken,
 * a client that leaves, or a daemon that stops, ends it, and nothing stays suspended.
 */
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/container.h"
#include "server/connection.h"
#include "server/exchange.h"
#include "server/hangup.h"
#include "server/reply.h"

#define REQUEST "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define PIECES 200

/* A stream that a test feeds. All under the lock. */
struct feed {
    struct api_stream stream;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct buf bytes;
    int end; /* 0: more may come, else what read gives at the end */
    void (*wake)(void *context);
    void *context;
    unsigned arms;
    bool freed;
};

static struct feed feed;
static struct edge edge;
static struct MHD_Daemon *server;
static int client;

static struct feed *feed_of(struct api_stream *stream)
{
    return CONTAINER_OF(stream, struct feed, stream);
}

static long feed_read(struct api_stream *stream, char *out, size_t max)
{
    struct feed *of = feed_of(stream);
    long size;

    (void)pthread_mutex_lock(&of->lock);
    size = (long)(of->bytes.size < max ? of->bytes.size : max);
    if (size > 0) {
        memcpy(out, of->bytes.data, (size_t)size);
        buf_consume(&of->bytes, (size_t)size);
    } else {
        size = of->end;
    }
    (void)pthread_mutex_unlock(&of->lock);
    return size;
}

/* Under the lock: takes the one wake that was asked for. */
static void call_wake(struct feed *of)
{
    void (*wake)(void *) = of->wake;

    of->wake = NULL;
    if (wake != NULL) {
        wake(of->context);
    }
}

static void feed_arm(struct api_stream *stream, void (*wake)(void *context), void *context)
{
    struct feed *of = feed_of(stream);

    (void)pthread_mutex_lock(&of->lock);
    of->wake = wake;
    of->context = context;
    of->arms++;
    if (of->bytes.size > 0 || of->end != 0) {
        call_wake(of);
    }
    (void)pthread_cond_broadcast(&of->changed);
    (void)pthread_mutex_unlock(&of->lock);
}

static void feed_free(struct api_stream *stream)
{
    struct feed *of = feed_of(stream);

    (void)pthread_mutex_lock(&of->lock);
    of->wake = NULL;
    of->freed = true;
    (void)pthread_cond_broadcast(&of->changed);
    (void)pthread_mutex_unlock(&of->lock);
}

static void feed_put(const char *text, int end)
{
    (void)pthread_mutex_lock(&feed.lock);
    (void)buf_append_text(&feed.bytes, text);
    feed.end = end;
    call_wake(&feed);
    (void)pthread_mutex_unlock(&feed.lock);
}

/* Waits until the stream has been asked for a wake that often. */
static void wait_for_arms(unsigned arms)
{
    (void)pthread_mutex_lock(&feed.lock);
    while (feed.arms < arms) {
        (void)pthread_cond_wait(&feed.changed, &feed.lock);
    }
    (void)pthread_mutex_unlock(&feed.lock);
}

static void wait_for_free(void)
{
    (void)pthread_mutex_lock(&feed.lock);
    while (!feed.freed) {
        (void)pthread_cond_wait(&feed.changed, &feed.lock);
    }
    (void)pthread_mutex_unlock(&feed.lock);
}

/* ---- a server that answers everything with the stream ---- */

static void on_connection(void *context, struct MHD_Connection *mhd, void **slot,
                          enum MHD_ConnectionNotificationCode code)
{
    (void)context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *slot = connection_new(
            &edge, MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
    } else {
        connection_free(&edge, *slot);
    }
}

static void *on_target(void *context, const char *target, struct MHD_Connection *mhd)
{
    struct connection *connection =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    struct exchange *exchange = exchange_new(&edge, connection, mhd, target);

    (void)context;
    connection_set_exchange(&edge, connection, exchange);
    return exchange;
}

static enum MHD_Result on_access(void *context, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *size, void **slot)
{
    struct exchange *exchange = *slot;

    (void)context;
    (void)mhd;
    (void)url;
    (void)method;
    (void)version;
    (void)data;
    (void)size;
    if (exchange_phase(exchange) == EXCHANGE_HEAD) {
        exchange_set_phase(exchange, EXCHANGE_BODY);
        return MHD_YES;
    }
    exchange->call.reply.status = 200;
    exchange->call.reply.stream = &feed.stream;
    return reply_queue(exchange) == 0 ? MHD_YES : MHD_NO;
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    struct exchange *exchange = *slot;

    (void)context;
    (void)mhd;
    (void)code;
    connection_set_exchange(&edge, exchange->connection, NULL);
    exchange_unref(exchange);
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

static int setup(void **state)
{
    int pair[2];

    (void)state;
    feed = (struct feed){ .stream = { feed_read, feed_arm, feed_free },
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER,
                          .bytes = BUF_INIT(1 << 20) };
    memset(&edge, 0, sizeof(edge));
    (void)pthread_mutex_init(&edge.lock, NULL);
    edge.hangup = hangup_new(4, &calls, NULL);
    edge.request_timeout_s = 60;
    server = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                                  MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC,
                              0, NULL, NULL, on_access, NULL, MHD_OPTION_NOTIFY_CONNECTION,
                              on_connection, NULL, MHD_OPTION_URI_LOG_CALLBACK, on_target, NULL,
                              MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_END);
    if (server == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return -1;
    }
    client = pair[0];
    if (MHD_add_connection(server, pair[1], &(struct sockaddr){ .sa_family = AF_UNIX },
                           sizeof(sa_family_t)) != MHD_YES) {
        return -1;
    }
    return write(client, REQUEST, strlen(REQUEST)) == (ssize_t)strlen(REQUEST) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(atomic_load(&edge.suspended), 0);
    MHD_stop_daemon(server);
    (void)close(client);
    hangup_free(edge.hangup);
    buf_done(&feed.bytes);
    (void)pthread_mutex_destroy(&edge.lock);
    assert_int_equal(atomic_load(&edge.exchanges), 1); /* nobody counts them down here */
    return 0;
}

/* Everything until this text has come, or the connection ends; the caller frees. */
static char *receive_until(const char *end)
{
    struct buf all = BUF_INIT(1 << 20);
    char piece[4096];
    ssize_t size;

    while (all.size == 0 || strstr(all.data, end) == NULL) {
        size = read(client, piece, sizeof(piece));
        if (size <= 0) {
            break;
        }
        (void)buf_append(&all, piece, (size_t)size);
    }
    return buf_take(&all, NULL);
}

static void test_all_bytes_arrive(void **state)
{
    char *text;

    (void)state;
    for (int i = 0; i < PIECES; i++) {
        feed_put("x", 0);
    }
    feed_put("the end", -1);
    text = receive_until("0\r\n\r\n");
    assert_non_null(strstr(text, "the end\r\n0\r\n\r\n"));
    assert_non_null(strstr(text, "Transfer-Encoding: chunked"));
    free(text);
    wait_for_free();
}

static void test_woken_from_sleep(void **state)
{
    char *text;

    (void)state;
    for (unsigned i = 1; i <= PIECES; i++) {
        wait_for_arms(i); /* asleep, or just about to be */
        feed_put("tick;", 0);
        text = receive_until("tick;");
        assert_non_null(strstr(text, "tick;"));
        free(text);
    }
    feed_put("", -1);
    text = receive_until("0\r\n\r\n");
    assert_non_null(strstr(text, "0\r\n\r\n"));
    free(text);
    wait_for_free();
}

static void test_a_broken_end_is_seen(void **state)
{
    char *text;

    (void)state;
    feed_put("half", -2);
    text = receive_until("0\r\n\r\n");
    assert_non_null(strstr(text, "half"));
    assert_null(strstr(text, "0\r\n\r\n"));
    free(text);
    wait_for_free();
}

static void test_the_client_leaves_a_quiet_stream(void **state)
{
    struct pollfd item = { .fd = hangup_fd(edge.hangup), .events = POLLIN };

    (void)state;
    wait_for_arms(1);
    assert_int_equal(shutdown(client, SHUT_RDWR), 0);
    assert_int_equal(poll(&item, 1, 10000), 1);
    hangup_dispatch(edge.hangup);
    wait_for_free();
}

static void cancel(struct exchange *exchange, void *context)
{
    (void)context;
    exchange_cancel(exchange, CANCEL_SHUTDOWN);
}

static void test_the_daemon_stops_a_quiet_stream(void **state)
{
    (void)state;
    wait_for_arms(1);
    connection_each(&edge, cancel, NULL);
    wait_for_free();
    feed_put("too late", 0); /* wakes nobody */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_bytes_arrive),
        TEST(test_woken_from_sleep),
        TEST(test_a_broken_end_is_seen),
        TEST(test_the_client_leaves_a_quiet_stream),
        TEST(test_the_daemon_stops_a_quiet_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
