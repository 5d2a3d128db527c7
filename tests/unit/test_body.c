/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies: into memory, into a spool file, dropped; limits of each; nothing kept afterwards. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/pool.h"
#include "server/exchange.h"
#include "tests/unit/edgekit.h"
#include "tests/unit/scratch.h"

#define MIB ((size_t)1 << 20)

/* What the handler saw: size, and a checksum of the content. */
static uint64_t sum_of(const unsigned char *data, size_t size, uint64_t sum)
{
    for (size_t i = 0; i < size; i++) {
        sum = sum * 31 + data[i];
    }
    return sum;
}

static uint64_t sum_of_file(int fd)
{
    unsigned char piece[65536];
    uint64_t sum = 0;
    ssize_t size;

    while ((size = read(fd, piece, sizeof(piece))) > 0) {
        sum = sum_of(piece, (size_t)size, sum);
    }
    return sum;
}

static void handle(struct api_call *call)
{
    uint64_t size = call->body_file >= 0 ? call->body_file_size : call->body_size;
    uint64_t sum = call->body_file >= 0
                       ? sum_of_file(call->body_file)
                       : sum_of((const unsigned char *)call->body, call->body_size, 0);

    call->reply.status = 200;
    (void)buf_printf(&call->reply.body, "got %llu sum %llx!", (unsigned long long)size,
                     (unsigned long long)sum);
    api_call_finish(call);
}

static const struct api_route json = { .handler = handle, .body = API_BODY_JSON };
static const struct api_route file = { .handler = handle, .body = API_BODY_FILE };
static const struct api_route none = { .handler = handle, .body = API_BODY_NONE };

static unsigned char *make_data(size_t size)
{
    unsigned char *data = alloc_zero(size + 1, 1);

    for (size_t i = 0; i < size; i++) {
        data[i] = (unsigned char)(i * 7 + i / 251);
    }
    return data;
}

static int send_text(const char *text)
{
    return edgekit_send(text, strlen(text));
}

/* Sends the body in one chunk, or with its length, on the open connection. */
static void send_body(const unsigned char *data, size_t size, bool chunked)
{
    char *head =
        chunked
            ? alloc_printf("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n",
                           size)
            : alloc_printf("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", size);

    assert_int_equal(send_text(head), 0);
    assert_int_equal(edgekit_send(data, size), 0);
    if (chunked) {
        assert_int_equal(send_text("\r\n0\r\n\r\n"), 0);
    }
    free(head);
}

static void check_received(const struct api_route *route, size_t size, bool chunked)
{
    unsigned char *data = make_data(size);
    char *wanted =
        alloc_printf("got %zu sum %llx!", size, (unsigned long long)sum_of(data, size, 0));
    char *answer;

    assert_true(edgekit_start(route, scratch_path) >= 0);
    for (int i = 0; i < 2; i++) { /* twice: the connection stays usable */
        send_body(data, size, chunked);
        answer = edgekit_receive("!");
        assert_non_null(strstr(answer, wanted));
        free(answer);
    }
    edgekit_stop();
    free(wanted);
    free(data);
}

static void test_into_memory(void **state)
{
    (void)state;
    check_received(&json, 1, false);
    check_received(&json, 3 * MIB + 17, false);
    check_received(&json, 3 * MIB + 17, true);
    check_received(&json, ROUTE_JSON_MAX, false);
}

static void test_into_a_file(void **state)
{
    (void)state;
    check_received(&file, 1, false);
    check_received(&file, 0, false);
    check_received(&file, 256 * 1024, true);
    check_received(&file, 5 * MIB + 4711, false);
    check_received(&file, 5 * MIB + 4711, true);
}

/* A chunked body that does not fit, and what the client reads. */
static void check_refused(const char *spool_dir, const struct api_route *route, size_t size,
                          const char *status)
{
    unsigned char *data = make_data(size);
    char *answer;

    assert_true(edgekit_start(route, spool_dir) >= 0);
    edgekit_edge.upload_max = MIB;
    send_body(data, size, true);
    answer = edgekit_receive("}");
    assert_non_null(strstr(answer, status));
    assert_non_null(strstr(answer, "application/problem+json"));
    assert_null(strstr(answer, "got "));
    edgekit_stop();
    free(answer);
    free(data);
}

static void test_too_large(void **state)
{
    (void)state;
    check_refused(scratch_path, &json, ROUTE_JSON_MAX + 1, "HTTP/1.1 413 ");
    check_refused(scratch_path, &none, ROUTE_IGNORED_MAX + 1, "HTTP/1.1 413 ");
    check_refused(scratch_path, &file, 2 * MIB, "HTTP/1.1 413 ");
}

static void test_no_place_for_the_spool(void **state)
{
    (void)state;
    check_refused("/nonexistent", &file, 10, "HTTP/1.1 500 ");
    check_refused("/nonexistent", &file, MIB / 2, "HTTP/1.1 500 ");
}

/* Chunks of a few bytes come many at a time, also while a piece is being written. */
static void test_many_small_chunks(void **state)
{
    size_t size = 3 * MIB;
    unsigned char *data = make_data(size);
    struct buf chunks = BUF_INIT(64 * MIB);
    char *wanted =
        alloc_printf("got %zu sum %llx!", size, (unsigned long long)sum_of(data, size, 0));
    char *answer;

    (void)state;
    for (size_t at = 0; at < size; at += 12) {
        size_t length = size - at < 12 ? size - at : 12;

        (void)buf_printf(&chunks, "%zx\r\n", length);
        (void)buf_append(&chunks, data + at, length);
        (void)buf_append_text(&chunks, "\r\n");
    }
    assert_true(edgekit_start(&file, scratch_path) >= 0);
    assert_int_equal(send_text("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"),
                     0);
    assert_int_equal(edgekit_send(chunks.data, chunks.size), 0);
    assert_int_equal(send_text("0\r\n\r\n"), 0);
    answer = edgekit_receive("!");
    assert_non_null(strstr(answer, wanted));
    edgekit_stop();
    buf_done(&chunks);
    free(answer);
    free(wanted);
    free(data);
}

static void test_without_end(void **state)
{
    unsigned char *data = make_data(MIB);
    char *answer;
    int result = 0;

    (void)state;
    assert_true(edgekit_start(&json, scratch_path) >= 0);
    assert_int_equal(send_text("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"),
                     0);
    (void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    for (int i = 0; i < 200 && result == 0; i++) {
        result =
            send_text("100000\r\n") < 0 || edgekit_send(data, MIB) < 0 || send_text("\r\n") < 0;
    }
    assert_int_equal(result, 1); /* cut off long before 200 MiB */
    answer = edgekit_receive("}");
    assert_non_null(strstr(answer, "HTTP/1.1 413 "));
    free(answer);
    free(data);
    edgekit_stop();
}

/* ---- an upload that ends badly, or has to wait ---- */

static int begin_upload(size_t size)
{
    char *head = alloc_printf("PUT / HTTP/1.1\r\nContent-Length: %zu\r\n\r\n", size);
    int client = edgekit_start(&file, scratch_path);

    assert_true(client >= 0);
    assert_int_equal(send_text(head), 0);
    free(head);
    return client;
}

/* The disk takes 2.5 MiB of 8: as a full one, in the middle of a piece while others come. */
static void test_the_disk_fails_half_way(void **state)
{
    const size_t size = 8 * MIB;
    unsigned char *data = make_data(size);
    struct rlimit whole;
    struct rlimit little;
    char *answer;

    (void)state;
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &whole), 0);
    little = whole;
    little.rlim_cur = 5 * MIB / 2;
    (void)begin_upload(size);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    assert_int_equal(edgekit_send(data, size), 0);
    answer = edgekit_receive("}");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &whole), 0);
    assert_non_null(strstr(answer, "HTTP/1.1 500 "));
    assert_non_null(strstr(answer, "could not be kept"));
    edgekit_stop();
    free(answer);
    free(data);
}

/* 3.5 of 8 MiB have come when the server ends; what there was of it is gone (edgekit_stop). */
static void test_stopped_half_way(void **state)
{
    unsigned char *data = make_data(4 * MIB);

    (void)state;
    (void)begin_upload(8 * MIB);
    assert_int_equal(edgekit_send(data, 7 * MIB / 2), 0);
    edgekit_stop();
    free(data);
}

static void test_the_client_leaves_half_way(void **state)
{
    unsigned char *data = make_data(4 * MIB);
    int client;

    (void)state;
    client = begin_upload(8 * MIB);
    assert_int_equal(edgekit_send(data, 7 * MIB / 2), 0);
    assert_int_equal(shutdown(client, SHUT_RDWR), 0);
    edgekit_stop();
    free(data);
}

/* A worker that has finished a call lets go of it last, when the server may be gone already. */
static void test_the_last_reference_needs_no_edge(void **state)
{
    struct edge *edge = alloc_zero(1, sizeof(*edge));
    struct exchange *exchange = exchange_new(edge, NULL, NULL, "/");

    (void)state;
    atomic_store(&edge->buffered, 3);
    exchange->buffered = 3;
    (void)exchange_ref(exchange);
    exchange_completed(exchange);
    assert_int_equal(atomic_load(&edge->buffered), 0);
    assert_int_equal(atomic_load(&edge->exchanges), 0);
    free(edge);
    exchange->edge = NULL;
    exchange_unref(exchange);
}

struct block {
    struct pool_job job;
    pthread_mutex_t held;
};

static void wait_for_test(struct pool_job *job)
{
    struct block *block = (struct block *)(void *)job; /* its first member */

    (void)pthread_mutex_lock(&block->held);
    (void)pthread_mutex_unlock(&block->held);
}

static void never(struct pool_job *job)
{
    (void)job;
    fail();
}

/* While nothing can be written no more comes in than two pieces and what the sockets hold. */
static void test_a_slow_disk(void **state)
{
    struct block block = { .job = { .run = wait_for_test, .drop = never } };
    const size_t size = 16 * MIB;
    unsigned char *data = make_data(size);
    char *wanted =
        alloc_printf("got %zu sum %llx!", size, (unsigned long long)sum_of(data, size, 0));
    const struct timeval patience = { .tv_sec = 1 };
    size_t sent = 0;
    ssize_t part;
    char *answer;
    int client;

    (void)state;
    client = begin_upload(size);
    (void)pthread_mutex_init(&block.held, NULL);
    (void)pthread_mutex_lock(&block.held);
    assert_int_equal(pool_submit(edgekit_edge.lane, &block.job, NULL), 0);
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)), 0);
    while (sent < size && (part = write(client, data + sent, size - sent)) > 0) {
        sent += (size_t)part;
    }
    assert_in_range(sent, 2 * MIB, 6 * MIB);
    (void)pthread_mutex_unlock(&block.held);
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){ .tv_sec = 0 },
                                sizeof(struct timeval)),
                     0);
    assert_int_equal(edgekit_send(data + sent, size - sent), 0);
    answer = edgekit_receive("!");
    assert_non_null(strstr(answer, wanted));
    edgekit_stop();
    (void)pthread_mutex_destroy(&block.held);
    free(answer);
    free(wanted);
    free(data);
}

static void test_an_ignored_body(void **state)
{
    char *answer;

    (void)state;
    assert_true(edgekit_start(&none, scratch_path) >= 0);
    send_body((const unsigned char *)"ignored", 7, false);
    answer = edgekit_receive("!");
    assert_non_null(strstr(answer, "got 0 sum 0!"));
    free(answer);
    edgekit_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_into_memory, scratch_fresh),
        cmocka_unit_test_setup(test_into_a_file, scratch_fresh),
        cmocka_unit_test_setup(test_too_large, scratch_fresh),
        cmocka_unit_test_setup(test_no_place_for_the_spool, scratch_fresh),
        cmocka_unit_test_setup(test_many_small_chunks, scratch_fresh),
        cmocka_unit_test_setup(test_without_end, scratch_fresh),
        cmocka_unit_test_setup(test_the_disk_fails_half_way, scratch_fresh),
        cmocka_unit_test_setup(test_stopped_half_way, scratch_fresh),
        cmocka_unit_test_setup(test_the_client_leaves_half_way, scratch_fresh),
        cmocka_unit_test_setup(test_a_slow_disk, scratch_fresh),
        cmocka_unit_test_setup(test_an_ignored_body, scratch_fresh),
        cmocka_unit_test(test_the_last_reference_needs_no_edge),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
