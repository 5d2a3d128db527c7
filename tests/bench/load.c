/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: offer a server the same request again and again, and tell how long each answer took.
 * Owns: the shapes of load of the benches, and the clock that they are measured with.
 * Threads: one, which sleeps unless something is due or has come: on a machine of two processors a
 * client with a thread for each caller measures itself.
 * May include: lib/base.
 *
 *     load PLACE offered RATE SECONDS CONNECTIONS <REQUEST
 *     load PLACE callers COUNT SECONDS <REQUEST
 *     load PLACE paused MILLISECONDS ROUNDS <REQUEST
 *     load PLACE burst COUNT <REQUEST
 *
 * PLACE is a port of 127.0.0.1, or the path of a Unix socket, with a slash; REQUEST the bytes of
 * one HTTP/1.1 request. Connections are opened before the clock begins, and kept.
 *
 * offered: calls are due at fixed times, whether or not earlier ones have come back; a call that no
 *          connection is free for waits, and its latency counts from the time it was due.
 * callers: so many, each with the next call as soon as it has its answer.
 * paused:  one caller, with a pause behind each answer.
 * burst:   one call on each of so many connections, all due at one moment.
 *
 * Prints {"seconds": S, "ms": [...]}: from the first due call to the last answer, and the latency
 * of each call in the order of their answers. Exit code 1, with what came on standard error, at the
 * first answer that is not a whole 200 with a Content-Length and `"success":true`, or does not come
 * within a minute; 2 when called wrongly.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"

#define MOST_CONNECTIONS 1024
#define MOST_CALLS 10000000.0
#define LARGEST_REQUEST ((size_t)16 << 20)
#define LARGEST_ANSWER ((size_t)64 << 20)
#define PIECE ((size_t)64 << 10)
#define TOLD 4000 /* bytes of a wrong answer that are shown */
#define EVENTS 64
#define PATIENCE_S 60
/* So that the server has accepted all connections before the first call is due. */
#define SETTLE_NS (50 * CLOCK_NS_PER_MS)

struct connection {
    int fd;
    bool is_under_way;
    int64_t since; /* under way: from when the latency counts; else since when it is free */
    size_t whole;  /* bytes of head and body; 0: the head is not there yet */
    struct buf answer;
};

struct load {
    bool fixed;    /* due times don't depend on answers */
    int64_t step;  /* fixed: between due times; else between an answer and the next call */
    int64_t lasts; /* no call begins so long after the first; or CLOCK_NEVER */
    uint64_t most; /* calls */
    size_t count;  /* connections */
    struct buf request;
    struct connection *connections;
    struct connection **free; /* a ring: who waited longest is next */
    size_t first_free;
    size_t free_count;
    int epoll;
    int64_t began;
    uint64_t sent;
    struct buf times; /* int64_t of each answered call */
};

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)fputs("load: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void __attribute__((noreturn)) fail_with(const char *what, const struct buf *answer)
{
    int told = (int)(answer->size < TOLD ? answer->size : TOLD);

    fail("%s: %.*s", what, told, answer->data == NULL ? "" : answer->data);
}

/* ---- what is asked for ---- */

static void __attribute__((noreturn)) usage(void)
{
    (void)fputs("see the head of tests/bench/load.c\n", stderr);
    exit(2);
}

/* A number of [least, most]; else there is no load. */
static double number(const char *text, double least, double most)
{
    double value = 0;

    if (text_parse_double(text, &value) < 0 || value < least || value > most) {
        usage();
    }
    return value;
}

static void parse(struct load *load, int count, char **words)
{
    if (count < 3) {
        usage();
    }
    *load = (struct load){ .lasts = CLOCK_NEVER, .count = 1, .most = UINT64_MAX };
    if (strcmp(words[2], "offered") == 0 && count == 6) {
        double rate = number(words[3], 0.001, 1e6);

        load->fixed = true;
        load->step = (int64_t)((double)CLOCK_NS_PER_S / rate);
        load->most = (uint64_t)(number(words[4], 0, MOST_CALLS / rate) * rate);
        load->count = (size_t)number(words[5], 1, MOST_CONNECTIONS);
    } else if (strcmp(words[2], "callers") == 0 && count == 5) {
        load->count = (size_t)number(words[3], 1, MOST_CONNECTIONS);
        load->lasts = (int64_t)(number(words[4], 0, 1e6) * (double)CLOCK_NS_PER_S);
    } else if (strcmp(words[2], "paused") == 0 && count == 5) {
        load->step = (int64_t)(number(words[3], 0, 1e6) * (double)CLOCK_NS_PER_MS);
        load->most = (uint64_t)number(words[4], 1, MOST_CALLS);
    } else if (strcmp(words[2], "burst") == 0 && count == 4) {
        load->fixed = true;
        load->count = (size_t)number(words[3], 1, MOST_CONNECTIONS);
        load->most = load->count;
    } else {
        usage();
    }
}

/* ---- connections ---- */

static int connected(const char *place)
{
    const struct timeval patience = { .tv_sec = PATIENCE_S };
    struct sockaddr_in tcp = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    struct sockaddr_un local = { .sun_family = AF_UNIX };
    bool is_path = strchr(place, '/') != NULL;
    int fd = socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failed = fd < 0 ? -1 : 0;
    const int on = 1;

    if (fd >= 0 && is_path) {
        (void)snprintf(local.sun_path, sizeof local.sun_path, "%s", place);
        failed = connect(fd, (const struct sockaddr *)&local, sizeof local);
    } else if (fd >= 0) {
        tcp.sin_port = htons((uint16_t)number(place, 1, UINT16_MAX));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        failed = connect(fd, (const struct sockaddr *)&tcp, sizeof tcp);
    }
    if (failed != 0) {
        fail("can't connect to %s: %s", place, err_errno_text(errno));
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return fd;
}

static void set_free(struct load *load, struct connection *connection, int64_t since)
{
    connection->is_under_way = false;
    connection->since = since;
    load->free[(load->first_free + load->free_count) % load->count] = connection;
    load->free_count++;
}

static void open_all(struct load *load, const char *place)
{
    load->connections = alloc_zero(load->count, sizeof *load->connections);
    load->free = alloc_zero(load->count, sizeof(struct connection *));
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < load->count; i++) {
        struct connection *connection = &load->connections[i];
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };

        connection->fd = connected(place);
        connection->answer = BUF_INIT(LARGEST_ANSWER);
        if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, connection->fd, &event) < 0) {
            fail("can't wait: %s", err_errno_text(errno));
        }
    }
    load->began = clock_mono_ns() + SETTLE_NS;
    for (size_t i = 0; i < load->count; i++) {
        set_free(load, &load->connections[i], load->began - (load->fixed ? 0 : load->step));
    }
}

/* ---- calls ---- */

static bool is_over(const struct load *load, int64_t now)
{
    return load->sent == load->most || now - load->began >= load->lasts;
}

/* When the next call is due; CLOCK_NEVER: not before something has come. */
static int64_t next_due(const struct load *load, int64_t now)
{
    if (load->free_count == 0 || is_over(load, now)) {
        return CLOCK_NEVER;
    }
    if (load->fixed) {
        return load->began + (int64_t)load->sent * load->step;
    }
    return load->free[load->first_free]->since + load->step;
}

static void send_due(struct load *load)
{
    int64_t now = clock_mono_ns();
    int64_t due = 0;

    while ((due = next_due(load, now)) <= now) {
        struct connection *connection = load->free[load->first_free];

        load->first_free = (load->first_free + 1) % load->count;
        load->free_count--;
        connection->is_under_way = true;
        connection->since = load->fixed ? due : now;
        connection->whole = 0;
        buf_reset(&connection->answer);
        load->sent++;
        /* Blocks for as long as the server does not read, PATIENCE_S at most. */
        if (send(connection->fd, load->request.data, load->request.size, MSG_NOSIGNAL) !=
            (ssize_t)load->request.size) {
            fail("a request could not be sent: %s", err_errno_text(errno));
        }
        now = clock_mono_ns();
    }
}

/* The value of Content-Length of a head that ends with an empty line. */
static size_t length_of(const struct buf *answer, const char *end)
{
    static const char name[] = "\r\nContent-Length:";
    const char *at = strcasestr(answer->data, name);
    size_t length = 0;

    if (at == NULL || at > end) {
        fail_with("an answer without a Content-Length", answer);
    }
    at += sizeof name - 1;
    for (at += strspn(at, " "); *at >= '0' && *at <= '9' && length <= LARGEST_ANSWER; at++) {
        length = length * 10 + (size_t)(*at - '0');
    }
    return length;
}

/* Whether all of it is there. What is wrong with it ends the program. */
static bool is_whole(struct connection *connection)
{
    static const char success[] = "\"success\":true";
    const struct buf *answer = &connection->answer;

    if (connection->whole == 0) {
        const char *end = memmem(answer->data, answer->size, "\r\n\r\n", 4);

        if (end == NULL) {
            return false;
        }
        connection->whole = (size_t)(end - answer->data) + 4 + length_of(answer, end);
    }
    if (answer->size < connection->whole) {
        return false;
    }
    if (answer->size > connection->whole) {
        fail_with("more than an answer", answer);
    }
    if (!text_starts_with(answer->data, "HTTP/1.1 200 ") ||
        memmem(answer->data, answer->size, success, sizeof success - 1) == NULL) {
        fail_with("a wrong answer", answer);
    }
    return true;
}

static void take(struct load *load, struct connection *connection)
{
    struct buf *answer = &connection->answer;
    char *room = buf_reserve(answer, PIECE);
    ssize_t got = 0;
    int64_t now = 0;

    if (room == NULL) {
        fail_with("an answer that is too large", answer);
    }
    got = recv(connection->fd, room, PIECE, MSG_DONTWAIT);
    now = clock_mono_ns();
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        fail_with("a connection was closed", answer);
    }
    buf_commit(answer, (size_t)got);
    if (!connection->is_under_way) {
        fail_with("more than an answer", answer);
    }
    if (is_whole(connection)) {
        connection->since = now - connection->since;
        (void)buf_append(&load->times, &connection->since, sizeof connection->since);
        set_free(load, connection, now);
    }
}

static void wait_and_take(struct load *load)
{
    struct epoll_event events[EVENTS];
    int64_t now = clock_mono_ns();
    int64_t due = next_due(load, now);
    int64_t left = due == CLOCK_NEVER ? PATIENCE_S * CLOCK_NS_PER_S : due < now ? 0 : due - now;
    struct timespec timeout = { left / CLOCK_NS_PER_S, left % CLOCK_NS_PER_S };
    int count = 0;

    if (due == CLOCK_NEVER && load->free_count == load->count) {
        return;
    }
    count = epoll_pwait2(load->epoll, events, EVENTS, &timeout, NULL);
    if (count < 0 && errno != EINTR) {
        fail("can't wait: %s", err_errno_text(errno));
    }
    if (count == 0 && due == CLOCK_NEVER) {
        fail("no answer came for %d seconds", PATIENCE_S);
    }
    for (int i = 0; i < count; i++) {
        take(load, events[i].data.ptr);
    }
}

static void run(struct load *load)
{
    while (load->free_count < load->count || !is_over(load, clock_mono_ns())) {
        send_due(load);
        wait_and_take(load);
    }
}

static void print(const struct load *load, int64_t ended)
{
    int64_t time = 0;

    (void)printf("{\"seconds\": %.6f, \"ms\": [", (double)(ended - load->began) / 1e9);
    for (size_t at = 0; at < load->times.size; at += sizeof time) {
        memcpy(&time, load->times.data + at, sizeof time);
        (void)printf("%s%.4f", at == 0 ? "" : ", ", (double)time / 1e6);
    }
    (void)puts("]}");
}

static void release(struct load *load)
{
    for (size_t i = 0; i < load->count; i++) {
        buf_done(&load->connections[i].answer);
    }
    buf_done(&load->request);
    buf_done(&load->times);
    free(load->connections);
    free(load->free);
}

int main(int count, char **words)
{
    struct load load;

    parse(&load, count, words);
    /* Ends with who started it, is woken when it asked to be, and not up to 50 us later. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    load.times = BUF_INIT(SIZE_MAX / 2);
    load.request = BUF_INIT(LARGEST_REQUEST);
    if (fd_read_to_end(STDIN_FILENO, &load.request, NULL) < 0 || load.request.size == 0) {
        fail("no request on standard input");
    }
    open_all(&load, words[1]);
    run(&load);
    print(&load, clock_mono_ns());
    release(&load);
    return fflush(stdout) == 0 ? 0 : 1;
}
