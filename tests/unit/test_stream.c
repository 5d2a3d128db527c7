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

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/container.h"
#include "server/exchange.h"
#include "server/hangup.h"
#include "tests/unit/edgekit.h"

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

static void handle(struct api_call *call)
{
    call->reply.status = 200;
    call->reply.stream = &feed.stream;
    api_call_finish(call);
}

static const struct api_route route = { .pattern = "/", .handler = handle, .body = API_BODY_NONE };

static int setup(void **state)
{
    (void)state;
    feed = (struct feed){ .stream = { feed_read, feed_arm, feed_free },
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER,
                          .bytes = BUF_INIT(1 << 20) };
    client = edgekit_start(&route, NULL);
    return client >= 0 ? edgekit_send(REQUEST, strlen(REQUEST)) : -1;
}

static int teardown(void **state)
{
    (void)state;
    edgekit_stop();
    buf_done(&feed.bytes);
    return 0;
}

static void test_all_bytes_arrive(void **state)
{
    char *text;

    (void)state;
    for (int i = 0; i < PIECES; i++) {
        feed_put("x", 0);
    }
    feed_put("the end", -1);
    text = edgekit_receive("0\r\n\r\n");
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
        text = edgekit_receive("tick;");
        assert_non_null(strstr(text, "tick;"));
        free(text);
    }
    feed_put("", -1);
    text = edgekit_receive("0\r\n\r\n");
    assert_non_null(strstr(text, "0\r\n\r\n"));
    free(text);
    wait_for_free();
}

static void test_a_broken_end_is_seen(void **state)
{
    char *text;

    (void)state;
    feed_put("half", -2);
    text = edgekit_receive("0\r\n\r\n");
    assert_non_null(strstr(text, "half"));
    assert_null(strstr(text, "0\r\n\r\n"));
    free(text);
    wait_for_free();
}

static void test_the_client_leaves_a_quiet_stream(void **state)
{
    struct pollfd item = { .fd = hangup_fd(edgekit_edge.hangup), .events = POLLIN };

    (void)state;
    wait_for_arms(1);
    assert_int_equal(shutdown(client, SHUT_RDWR), 0);
    assert_int_equal(poll(&item, 1, 10000), 1);
    hangup_dispatch(edgekit_edge.hangup);
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
    connection_each(&edgekit_edge, cancel, NULL);
    wait_for_free();
    feed_put("too late", 0); /* wakes nobody */
}

/* As when a reply becomes a stream after everything else was cancelled. */
static void test_a_stream_that_begins_too_late(void **state)
{
    char *text;

    (void)state;
    wait_for_arms(1);
    atomic_store(&edgekit_edge.stopping, true);
    feed_put("never read", 0);
    text = edgekit_receive("never read");
    assert_null(strstr(text, "never read"));
    free(text);
    wait_for_free();
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
        TEST(test_a_stream_that_begins_too_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
