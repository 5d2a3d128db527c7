/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: kernd-template.so: take orders from kernd, fork a box for each.
 * Owns: the template's connection.
 * Threads: one.
 * May include: base, init, template.
 */
#include "lib/box/template.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/fd.h"
#include "lib/box/clone.h"
#include "lib/box/init.h"

#define EXPORTED __attribute__((visibility("default")))
/* Beside the network namespace (template_network.c). */
#define NEW_NAMESPACES (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)
/* Bits of what the driver is told (driver_template.py). */
#define KERND_PROGRAM 1
#define KERND_PREPARES 2
#define KERND_AHEAD 4
#define KERND_INIT "/run/kernd-lib/kernd-init"

/* The interpreter's own, of the stable interface (Python 3.7): nothing of Python is needed to build
 * this. */
/* NOLINTBEGIN(readability-identifier-naming) */
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
void PyOS_BeforeFork(void);
void PyOS_AfterFork_Parent(void);
void PyOS_AfterFork_Child(void);
/* NOLINTEND(readability-identifier-naming) */

/* An order and what came with it. */
struct order {
    struct template_wire_fork fork;
    int fds[TEMPLATE_WIRE_FDS_MAX];
    size_t fd_count;
    bool outside; /* could not be born in its cgroup */
};

/* What PID 1 of a new box has to do. */
struct birth {
    const struct order *order;
    sigjmp_buf back; /* the program's way into the interpreter */
};

static struct template own;

/* "kernd-template: what: reason", in one write so that it stays one line. */
static void tell(int fd, const char *what, int reason)
{
    char line[256];
    int size = snprintf(line, sizeof(line), "kernd-template: %s: %s\n", what,
                        reason == 0 ? "refused" : err_errno_text(reason));
    ssize_t ignored = write(fd, line, (size_t)size);

    (void)ignored;
}

static void give_up(const char *what) __attribute__((noreturn));
static void give_up(const char *what)
{
    tell(STDERR_FILENO, what, errno);
    _exit(1);
}

static void set_disposition(int number, void (*handler)(int))
{
    const struct sigaction action = { .sa_handler = handler };

    (void)sigaction(number, &action, NULL);
}

/* ---- orders ---- */

static void take_descriptors(struct msghdr *message, struct order *order)
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
static bool receive(int connection, struct order *order)
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

    template_network_prepare(&own, connection);
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

static void close_descriptors(const struct order *order)
{
    for (size_t i = 0; i < order->fd_count; i++) {
        fd_close(order->fds[i]);
    }
}

/* ---- PID 1 of a new box ---- */

/* 0, 1 and 2 of the box in place of the template's; no other descriptor is left. */
static bool take_streams(const struct order *order)
{
    for (int i = 0; i < 3; i++) {
        if (dup2(order->fds[i], i) < 0) {
            return false;
        }
    }
    return close_range(STDERR_FILENO + 1, UINT_MAX, 0) == 0;
}

/* All walls, in a process that has run nothing of anybody. */
static void build_box(const struct order *order)
{
    const char *failed;

    set_disposition(SIGCHLD, SIG_DFL);
    if (!take_streams(order)) {
        give_up("take its descriptors");
    }
    failed = template_mounts_build(&own, &order->fork);
    failed = failed != NULL ? failed : template_walls_leave();
    failed = failed != NULL ? failed : template_walls_filter(&own.walls);
    if (failed != NULL) {
        give_up(failed);
    }
}

/*
 * PID 1 is kernd-init, as in every box. It says hello when it can be neither read nor traced, and
 * not before that does kernd hand any code to the program. (What is left of the template in this
 * process would belong to the box's user in /proc: its memory is of the template's user namespace,
 * whose root that user is.)
 */
static void become_init(pid_t program, bool outside, uint32_t landlock_abi)
    __attribute__((noreturn));
static void become_init(pid_t program, bool outside, uint32_t landlock_abi)
{
    char name[] = KERND_INIT;
    char how[32];
    char number[16];
    char abi[16];
    char *const argv[] = { name, how, number, abi, NULL };
    char *const environment[] = { NULL };

    (void)snprintf(how, sizeof(how), "%s", outside ? INIT_WIRE_OUTSIDE : INIT_WIRE_FORKED);
    (void)snprintf(number, sizeof(number), "%d", program);
    (void)snprintf(abi, sizeof(abi), "%" PRIu32, landlock_abi);
    (void)execve(KERND_INIT, argv, environment);
    give_up("become kernd-init");
}

/*
 * PID 1 of the box, in the template's memory, which waits (clone.h): a copy of that memory is made
 * once, for the program. Nothing is left behind there but what libc does at a fork, and undoes.
 */
static void run_first(void *context) __attribute__((noreturn));
static void run_first(void *context)
{
    struct birth *birth = context;
    const char *failed;
    uint32_t landlock_abi;
    int ruleset;
    pid_t program;

    build_box(birth->order);
    landlock_abi = init_landlock_prepare(false, &ruleset);
    program = fork();
    if (program < 0) {
        give_up("fork the program");
    }
    if (program > 0) {
        become_init(program, birth->order->outside, landlock_abi);
    }
    failed = template_program_become(&own, &birth->order->fork, ruleset);
    if (failed != NULL) {
        give_up(failed);
    }
    siglongjmp(birth->back, 1);
}

/* ---- the template ---- */

static long clone_into(struct birth *birth, int cgroup)
{
    struct clone_args arguments = { .flags = NEW_NAMESPACES, .exit_signal = SIGCHLD };

    if (cgroup >= 0) {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = (unsigned)cgroup;
    }
    return clone_start(&arguments, run_first, birth);
}

/* Where a process can't be born in a cgroup, kernd moves it before it has any code. */
static long clone_box(struct order *order, struct birth *birth)
{
    const int cgroup = order->fork.has_cgroup != 0 ? order->fds[3] : -1;
    long pid = clone_into(birth, cgroup);
    int reason = errno;

    if (pid < 0 && cgroup >= 0) {
        order->outside = true;
        pid = clone_into(birth, -1);
        reason = errno;
    }
    /* The box took itself out of reach, and with it the memory that it had (prctl(2)). */
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    errno = reason;
    return pid;
}

/* True in the program of a new box. */
static bool fork_box(struct order *order)
{
    const char *refused = template_check_again();
    struct birth birth = { .order = order };

    if (refused != NULL) {
        tell(order->fds[2], refused, 0);
        return false;
    }
    if (!template_network_renew(&own)) {
        tell(order->fds[2], "make a network namespace", errno);
        return false;
    }
    own.has_new_network = false; /* it is this box's */
    PyOS_BeforeFork();
    if (sigsetjmp(birth.back, 1) != 0) {
        explicit_bzero(order, sizeof(*order)); /* its names are the host's affair */
        template_program_resume();
        PyOS_AfterFork_Child();
        return true;
    }
    if (clone_box(order, &birth) < 0) {
        tell(order->fds[2], "clone", errno);
    }
    PyOS_AfterFork_Parent();
    return false;
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
        tell(STDERR_FILENO, refused, 0);
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
        give_up(failed);
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
    struct order order;

    own.greeting = greeting;
    own.greeting_size = (size_t)size;
    set_disposition(SIGCHLD, SIG_IGN); /* the first processes of boxes that ended are no zombies */
    while (!is_program && receive(connection, &order)) {
        how = KERND_PROGRAM | (order.fork.prepares != 0 ? KERND_PREPARES : 0) |
              (order.fork.ahead != 0 && !own.copies_ahead ? KERND_AHEAD : 0);
        is_program = fork_box(&order);
        if (!is_program) {
            close_descriptors(&order);
        }
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
