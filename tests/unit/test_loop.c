/* SPDX-License-Identifier: Apache-2.0 */
#include <microhttpd.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/container.h"
#include "lib/base/fd.h"
#include "lib/base/pool.h"
#include "server/loop.h"

#define MANY 40 /* more than are looked at before work is done where it was read */
#define END ';' /* of an answer */
#define LANE "lane"
#define EVENT "kernd-event"

/* A server whose answer to each request is the name of the thread that made it. */
static struct loop *loop;
static struct pool *lane;
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static bool gate_open;
static int at_gate;
static char gate_thread[16]; /* of who came last */

struct request {
    struct pool_job job;
    struct MHD_Connection *mhd;
    bool slow;
    bool left_alone; /* it waits for the test to resume it */
    bool is_answered;
    char thread[16];
};

static struct request *left; /* the one that is left alone */
static sem_t is_left;

static void pass_gate(const char *thread)
{
    (void)pthread_mutex_lock(&gate_lock);
    (void)snprintf(gate_thread, sizeof(gate_thread), "%s", thread);
    at_gate++;
    (void)pthread_cond_broadcast(&gate_changed);
    while (!gate_open) {
        (void)pthread_cond_wait(&gate_changed, &gate_lock);
    }
    (void)pthread_mutex_unlock(&gate_lock);
}

static void work(struct pool_job *job)
{
    struct request *request = CONTAINER_OF(job, struct request, job);

    (void)pthread_getname_np(pthread_self(), request->thread, sizeof(request->thread));
    if (request->slow) {
        pass_gate(request->thread);
    }
    loop_answer(loop, request->mhd);
}

static void drop(struct pool_job *job)
{
    (void)job;
    fail();
}

static enum MHD_Result answer(const struct request *request)
{
    char body[sizeof(request->thread) + 1];
    const int size = snprintf(body, sizeof(body), "%s%c", request->thread, END);
    struct MHD_Response *response =
        MHD_create_response_from_buffer((size_t)size, body, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result = MHD_queue_response(request->mhd, MHD_HTTP_OK, response);

    MHD_destroy_response(response);
    return result;
}

static void send_away(struct request *request)
{
    request->is_answered = true;
    MHD_suspend_connection(request->mhd);
    if (request->left_alone) {
        (void)snprintf(request->thread, sizeof(request->thread), "test");
        left = request;
        assert_int_equal(sem_post(&is_left), 0);
        return;
    }
    request->job = (struct pool_job){ .run = work, .drop = drop, .mobile = loop_goes_on(loop) };
    assert_int_equal(pool_submit(lane, &request->job, NULL), 0);
}

static enum MHD_Result on_access(void *context, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *size, void **slot)
{
    struct request *request = *slot;

    (void)context;
    (void)method;
    (void)version;
    (void)data;
    (void)size;
    if (request == NULL) {
        request = calloc(1, sizeof(*request));
        assert_non_null(request);
        request->mhd = mhd;
        request->slow = strcmp(url, "/slow") == 0;
        request->left_alone = strcmp(url, "/alone") == 0;
        *slot = request;
    } else if (request->is_answered) {
        return answer(request);
    } else {
        send_away(request);
    }
    return MHD_YES;
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)mhd;
    (void)code;
    free(*slot);
    *slot = NULL;
}

static int begin_with(unsigned silence_s)
{
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0,
                         NULL, NULL, on_access, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
                         NULL, MHD_OPTION_CONNECTION_TIMEOUT, silence_s, MHD_OPTION_END);

    gate_open = false;
    at_gate = 0;
    assert_int_equal(sem_init(&is_left, 0, 0), 0);
    lane = pool_new(LANE, 2, MANY, NULL);
    loop = loop_new(daemon, NULL);
    return lane == NULL || loop == NULL ? -1 : 0;
}

static int begin(void **state)
{
    (void)state;
    return begin_with(60);
}

static int begin_impatient(void **state)
{
    (void)state;
    return begin_with(1);
}

static int end(void **state)
{
    (void)state;
    pool_end(lane); /* first: its threads wake the loop when they are done */
    loop_free(loop);
    pool_free(lane);
    return sem_destroy(&is_left);
}

static int connect_client(void)
{
    const struct sockaddr address = { .sa_family = AF_UNIX };
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(loop_add(loop, pair[1], &address, sizeof(sa_family_t)), 0);
    return pair[0];
}

static void ask(int client, const char *target)
{
    char text[64];
    const int size =
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", target);

    assert_int_equal(fd_write_full(client, text, (size_t)size), 0);
}

/* Whether this is the name of the answer's thread, but for the number at its end. */
static bool is_answered_by(int client, const char *thread)
{
    char text[1024] = "";
    size_t size = 0;

    while (size == 0 || text[size - 1] != END) {
        const ssize_t got = read(client, text + size, sizeof(text) - 1 - size);

        assert_true(got > 0);
        size += (size_t)got;
        text[size] = '\0';
    }
    return strstr(text, thread) != NULL;
}

static void assert_answer(int client, const char *thread)
{
    assert_true(is_answered_by(client, thread));
}

static void get(int client, const char *thread)
{
    ask(client, "/");
    assert_answer(client, thread);
}

static void wait_at_gate(int count)
{
    (void)pthread_mutex_lock(&gate_lock);
    while (at_gate < count) {
        (void)pthread_cond_wait(&gate_changed, &gate_lock);
    }
    (void)pthread_mutex_unlock(&gate_lock);
}

static void open_gate(void)
{
    (void)pthread_mutex_lock(&gate_lock);
    gate_open = true;
    (void)pthread_cond_broadcast(&gate_changed);
    (void)pthread_mutex_unlock(&gate_lock);
}

static void shut_gate(void)
{
    (void)pthread_mutex_lock(&gate_lock);
    gate_open = false;
    at_gate = 0;
    (void)pthread_mutex_unlock(&gate_lock);
}

/* Who comes one at a time is answered by the thread that read it, others by the lane's. */
static void works_where_it_reads(void **state)
{
    int client = connect_client();

    (void)state;
    get(client, LANE);
    do {
        ask(client, "/");
    } while (!is_answered_by(client, EVENT));
    (void)close(client);
}

/* Of a request that such a thread works on, which stands at the gate. */
static void stop_at_work(int client)
{
    ask(client, "/slow");
    wait_at_gate(1);
    while (strncmp(gate_thread, EVENT, strlen(EVENT)) != 0) {
        open_gate();
        assert_answer(client, LANE);
        shut_gate();
        get(client, "");
        ask(client, "/slow");
        wait_at_gate(1);
    }
}

/* Meanwhile another thread reads, and the lane works. */
static void reads_while_it_works(void **state)
{
    int busy = connect_client();
    int other = connect_client();

    (void)state;
    stop_at_work(busy);
    for (int i = 0; i < MANY; i++) {
        get(other, LANE);
    }
    open_gate();
    assert_answer(busy, EVENT);
    (void)close(busy);
    (void)close(other);
}

/* One that came while the one before was worked on is for the thread that answers that. */
static void goes_on_with_the_next(void **state)
{
    int client = connect_client();

    (void)state;
    stop_at_work(client);
    ask(client, "/slow");
    open_gate();
    wait_at_gate(2);
    assert_memory_equal(gate_thread, EVENT, strlen(EVENT));
    assert_answer(client, EVENT);
    (void)close(client);
}

/* Two that come at the same time are not made to wait for each other. */
static void works_side_by_side(void **state)
{
    int clients[2] = { connect_client(), connect_client() };

    (void)state;
    for (int i = 0; i < MANY; i++) {
        get(clients[0], "");
    }
    ask(clients[0], "/slow");
    ask(clients[1], "/slow");
    wait_at_gate(2);
    open_gate();
    assert_answer(clients[0], "");
    assert_answer(clients[1], "");
    (void)close(clients[0]);
    (void)close(clients[1]);
}

/* A thread that has nothing to do with the loop. */
static void is_resumed_by_any_thread(void **state)
{
    int client = connect_client();

    (void)state;
    for (int i = 0; i < MANY; i++) {
        ask(client, "/alone");
        assert_int_equal(sem_wait(&is_left), 0);
        loop_resume(loop, left->mhd);
        assert_answer(client, "test");
    }
    (void)close(client);
}

/* By the timer: nothing else happens. */
static void ends_who_is_silent(void **state)
{
    int idle = connect_client();
    char byte;

    (void)state;
    assert_int_equal(read(idle, &byte, 1), 0);
    (void)close(idle);
}

/* With connections that are open, and with none. */
static void ends_at_any_time(void **state)
{
    int client;

    assert_int_equal(begin(state), 0);
    assert_int_equal(end(state), 0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(begin(state), 0);
        client = connect_client();
        if (i % 2 != 0) {
            get(client, LANE);
        }
        assert_int_equal(end(state), 0);
        (void)close(client);
    }
}

#define STORM_CLIENTS 4
#define STORM_REQUESTS 300

static void *storm(void *context)
{
    int client = *(int *)context;

    for (int i = 0; i < STORM_REQUESTS; i++) {
        get(client, "");
    }
    return NULL;
}

/* None is forgotten. */
static void answers_all(void **state)
{
    pthread_t threads[STORM_CLIENTS];
    int clients[STORM_CLIENTS];

    (void)state;
    for (size_t i = 0; i < STORM_CLIENTS; i++) {
        clients[i] = connect_client();
        assert_int_equal(pthread_create(&threads[i], NULL, storm, &clients[i]), 0);
    }
    for (size_t i = 0; i < STORM_CLIENTS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        (void)close(clients[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(works_where_it_reads, begin, end),
        cmocka_unit_test_setup_teardown(reads_while_it_works, begin, end),
        cmocka_unit_test_setup_teardown(goes_on_with_the_next, begin, end),
        cmocka_unit_test_setup_teardown(works_side_by_side, begin, end),
        cmocka_unit_test_setup_teardown(is_resumed_by_any_thread, begin, end),
        cmocka_unit_test_setup_teardown(ends_who_is_silent, begin_impatient, end),
        cmocka_unit_test_setup_teardown(answers_all, begin, end),
        cmocka_unit_test(ends_at_any_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
