/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: kernd-template.so: take orders from kernd, fork a box for each.
 * Owns: the template's connection.
 * Threads: one.
 * May include: base, init, template.
 */
#include "lib/box/template.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fd.h"

#define EXPORTED __attribute__((visibility("default")))
/* Bits of what the driver is told (driver_template.py). */
#define KERND_PROGRAM 1
#define KERND_PREPARES 2
#define KERND_AHEAD 4

/* The interpreter's own, of the stable interface (Python 3.7): nothing of Python is needed to build
 * this. */
/* NOLINTBEGIN(readability-identifier-naming) */
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
void PyOS_BeforeFork(void);
void PyOS_AfterFork_Parent(void);
void PyOS_AfterFork_Child(void);
/* NOLINTEND(readability-identifier-naming) */

static struct template own;

static void set_disposition(int number, void (*handler)(int))
{
    const struct sigaction action = { .sa_handler = handler };

    (void)sigaction(number, &action, NULL);
}

/* ---- orders ---- */

static void take_descriptors(struct msghdr *message, struct template_order *order)
{
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL;
         part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            order->fd_count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(order->fds, CMSG_DATA(part), order->fd_count * sizeof(int));
        }
    }
}

/* The next order; false: the connection ended, or what came is none. */
static bool receive(int connection, struct template_order *order)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(TEMPLATE_WIRE_FDS_MAX * sizeof(int))];
    } control;
    struct iovec data = { .iov_base = &order->fork, .iov_len = sizeof(order->fork) };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    ssize_t got;

    memset(order, 0, sizeof(*order));
    do {
        got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        return false;
    }
    take_descriptors(&message, order);
    return got == (ssize_t)sizeof(order->fork) && (message.msg_flags & MSG_CTRUNC) == 0 &&
           template_wire_is_order(&order->fork) && order->fd_count == 3 + order->fork.has_cgroup;
}

static void close_descriptors(const struct template_order *order)
{
    for (size_t i = 0; i < order->fd_count; i++) {
        fd_close(order->fds[i]);
    }
}

/* ---- the template ---- */

/* True in the program of a new box. */
static bool fork_box(struct template_order *order)
{
    const char *refused = template_check_again();
    bool is_program;

    if (refused != NULL) {
        template_birth_tell(order->fds[2], refused, 0);
        return false;
    }
    if (!template_network_renew(&own)) {
        template_birth_tell(order->fds[2], "make a network namespace", errno);
        return false;
    }
    if (own.is_standby) {
        return template_birth(&own, order); /* the interpreter knows of the fork already */
    }
    PyOS_BeforeFork();
    is_program = template_birth(&own, order);
    if (is_program) {
        PyOS_AfterFork_Child();
    } else {
        PyOS_AfterFork_Parent();
        template_network_keep(&own, order->box);
    }
    return is_program;
}

/*
 * False: go on, as the standby (template_standby.h) or as a template that has none. True: it had
 * the next order.
 */
static bool stand_by(int connection)
{
    bool stood_by;

    if (!template_standby_wanted(&own, connection)) {
        return false;
    }
    PyOS_BeforeFork();
    stood_by = template_standby_fork(&own);
    if (own.is_standby) {
        PyOS_AfterFork_Child();
    } else {
        PyOS_AfterFork_Parent();
    }
    return stood_by && template_standby_await(&own);
}

/*
 * Threads that a library keeps for its own use (OpenBLAS does) end before a fork and come back when
 * they are wanted (pthread_atfork(3)): so a fork leaves one thread, if it is only that.
 */
static void rehearse(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        _exit(0);
    }
    (void)waitpid(pid, NULL, 0);
}

/* Called by the driver before it says that it is ready. 0, or -1 and why on standard error. */
EXPORTED int kernd_template_check(int connection);
int kernd_template_check(int connection)
{
    const char *refused;

    rehearse();
    template_pages_prepare();
    refused = template_check(&own, connection);
    if (refused != NULL) {
        template_birth_tell(STDERR_FILENO, refused, 0);
        return -1;
    }
    return 0;
}

/*
 * The filter of boxes, but for what makes boxes: building one takes the kernel 0.1 ms, which each
 * box would pay. From here on the template needs nothing else (the study does).
 */
static void confine(void)
{
    const char *failed = template_walls_filter(&own.filter);

    if (failed != NULL) {
        template_birth_tell(STDERR_FILENO, failed, errno);
        _exit(1);
    }
}

/*
 * Called by the driver behind the check. Comes back with KERND_PROGRAM in a fork whose connection
 * is one that the driver has made, to be what programs are, and with 0 in the template when that
 * ended.
 */
EXPORTED int kernd_template_study(void);
int kernd_template_study(void)
{
    const int state = PyGILState_Ensure();
    struct template_study *study;
    pid_t pid;

    PyOS_BeforeFork();
    study = template_study_fork(&pid);
    if (pid == 0) {
        PyOS_AfterFork_Child();
    } else {
        PyOS_AfterFork_Parent();
        own.copies_ahead = template_study_end(study, pid);
        confine();
    }
    PyGILState_Release(state);
    return pid == 0 ? KERND_PROGRAM : 0;
}

/*
 * Called by the driver once. Comes back with KERND_PROGRAM in every program that is forked, as its
 * process 2, connected to kernd (TEMPLATE_DRIVER) and with the greeting sent, unless it is to hear
 * what kernd says before that, and to greet itself (KERND_PREPARES); KERND_AHEAD: its code may take
 * a while to come. And with 0 in the template, when kernd wants no more of it.
 */
EXPORTED int kernd_template_serve(int connection, const char *greeting, int size);
int kernd_template_serve(int connection, const char *greeting, int size)
{
    const int state = PyGILState_Ensure();
    bool is_program = false;
    int how = 0;
    struct template_order order;

    own.greeting = greeting;
    own.greeting_size = (size_t)size;
    set_disposition(SIGCHLD, SIG_IGN); /* the first processes of boxes that ended are no zombies */
    own.has_standbys = template_birth_can_give() && template_standby_prepare(&own);
    while (!is_program) {
        if (stand_by(connection)) {
            continue;
        }
        if (!receive(connection, &order)) {
            break;
        }
        how = KERND_PROGRAM | (order.fork.prepares != 0 ? KERND_PREPARES : 0) |
              (order.fork.ahead != 0 && !own.copies_ahead ? KERND_AHEAD : 0);
        template_standby_tell(&own, &order.fork);
        is_program = fork_box(&order);
        if (!is_program) {
            close_descriptors(&order);
            template_standby_end(&own);
        }
    }
    if (!is_program) {
        template_standby_end(&own);
    }
    PyGILState_Release(state);
    return is_program ? how : 0;
}

/*
 * Called by a program that is at its end, for exit(3): what libraries want to do then, they do. The
 * lock of the interpreter is held, so that no thread of Python sees it.
 */
EXPORTED void kernd_template_leave(int status) __attribute__((noreturn));
void kernd_template_leave(int status)
{
    (void)PyGILState_Ensure();
    exit(status); /* NOLINT(concurrency-mt-unsafe): no other thread calls it */
}
