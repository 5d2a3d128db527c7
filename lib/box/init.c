/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: kernd-init, PID 1 of a box: start the program, reap orphans, forward signals, report.
 * Owns: the connection to kernd; its end, at either side, is the end of the box.
 * Threads: one.
 * May include: base, init.
 */
#include "lib/box/init.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"

/* How long the program's own children may take to die before the report goes out without them. */
#define LEFTOVERS_MS 200

struct init {
    int connection;
    int children;  /* signalfd for SIGCHLD */
    bool in_image; /* see INIT_WIRE_IN_IMAGE */
    pid_t program;
    int wait_status;
    bool ended;
    bool alone; /* nobody else is left in the box */
};

static int connect_to_kernd(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = INIT_WIRE_SOCKET };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        fd_clear(&fd);
    }
    return fd;
}

static int open_children(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) {
        return -1;
    }
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Reaps whatever is dead. False once there are no children at all. */
static bool reap(struct init *init)
{
    int status = 0;
    pid_t pid = 0;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == init->program) {
            init->wait_status = status;
            init->ended = true;
        }
    }
    return pid == 0;
}

/* Waits for a death, at most this long. */
static void wait_for_death(struct init *init, int timeout_ms)
{
    struct pollfd watched = { .fd = init->children, .events = POLLIN };
    struct signalfd_siginfo info;

    if (poll(&watched, 1, timeout_ms) > 0) {
        ssize_t ignored = read(init->children, &info, sizeof(info));

        (void)ignored;
    }
}

/* A message of kernd. False: it went away, or speaks something else. */
static bool obey(struct init *init)
{
    struct init_wire_header header;
    struct init_wire_signal message;

    if (fd_read_full(init->connection, &header, sizeof(header)) < 0 ||
        header.type != INIT_WIRE_SIGNAL || header.size != sizeof(message) ||
        fd_read_full(init->connection, &message, sizeof(message)) < 0) {
        return false;
    }
    if (message.signal_number >= 0 && message.signal_number < NSIG) {
        /* -1 is everybody in this namespace but PID 1 (kill(2)). */
        (void)kill(message.all != 0 ? -1 : init->program, message.signal_number);
    }
    return true;
}

static bool run_until_end(struct init *init)
{
    struct pollfd watched[2] = {
        { .fd = init->connection, .events = POLLIN },
        { .fd = init->children, .events = POLLIN },
    };

    while (!init->ended) {
        if (poll(watched, 2, -1) < 0 && errno != EINTR) {
            return false;
        }
        if (watched[1].revents != 0) {
            wait_for_death(init, 0);
            (void)reap(init);
        }
        if (!init->ended && watched[0].revents != 0 && !obey(init)) {
            return false;
        }
    }
    return true;
}

/* Kills what the program left running, so that its usage counts and nothing writes any more. */
static void end_leftovers(struct init *init)
{
    int64_t deadline = clock_deadline_after_ms(LEFTOVERS_MS);

    /* Nobody escapes by a fork: one that is to be killed does not fork any more (fork(2) fails
     * with ERESTARTNOINTR), and orphans come to this process. */
    (void)kill(-1, SIGKILL);
    while (reap(init)) {
        if (clock_passed(deadline)) {
            return;
        }
        wait_for_death(init, clock_poll_ms(deadline, -1));
    }
    init->alone = true;
}

static int64_t microseconds(const struct timeval *time)
{
    return (int64_t)time->tv_sec * 1000000 + time->tv_usec;
}

static void report_end(struct init *init, int64_t at_ns)
{
    struct init_wire_exited exited = { .wait_status = init->wait_status,
                                       .alone = init->alone ? 1 : 0,
                                       .at_ns = at_ns };
    struct rusage usage;

    if (getrusage(RUSAGE_CHILDREN, &usage) == 0) {
        exited.cpu_user_us = microseconds(&usage.ru_utime);
        exited.cpu_system_us = microseconds(&usage.ru_stime);
        exited.max_rss_bytes = (int64_t)usage.ru_maxrss * 1024;
    }
    (void)init_send(init->connection, INIT_WIRE_EXITED, &exited, sizeof(exited));
}

/* One line for the launcher's stderr, which kernd quotes when a box does not start. */
static int give_up(const char *what)
{
    ssize_t ignored = write(STDERR_FILENO, what, strlen(what));

    (void)ignored;
    return 1;
}

/* Hello, then the program's start. False: no program came. */
static bool begin(struct init *init)
{
    struct init_wire_hello hello = { .version = INIT_WIRE_VERSION };
    struct init_wire_started started = { 0 };
    int start_errno = 0;
    int ruleset = -1;
    int report = -1;

    hello.landlock_abi = init_landlock_prepare(init->in_image, &ruleset);
    init->program = init_child_fork(init->connection, ruleset, init->in_image, &report);
    fd_close(ruleset);
    /* The program's own from here on: its end of file must not wait for this process. */
    fd_close(STDIN_FILENO);
    fd_close(STDOUT_FILENO);
    fd_close(STDERR_FILENO);
    if (init->program < 0 || !init_send(init->connection, INIT_WIRE_HELLO, &hello, sizeof(hello)) ||
        !init_child_await(report, &start_errno)) {
        return false;
    }
    started.start_errno = start_errno;
    started.at_ns = clock_mono_ns();
    return init_send(init->connection, INIT_WIRE_STARTED, &started, sizeof(started));
}

int main(int argument_count, char **arguments)
{
    struct init init = {
        .connection = -1,
        .in_image = argument_count > 1 && strcmp(arguments[1], INIT_WIRE_IN_IMAGE) == 0,
    };
    int64_t ended_ns = 0;

    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {
        return give_up("kernd-init: can't protect itself\n");
    }
    init.children = open_children();
    init.connection = connect_to_kernd();
    if (init.children < 0 || init.connection < 0) {
        return give_up("kernd-init: can't reach kernd\n");
    }
    if (init.in_image && !init_receive_streams(init.connection)) {
        return give_up("kernd-init: got no streams\n");
    }
    if (!begin(&init) || !run_until_end(&init)) {
        return 1;
    }
    ended_ns = clock_mono_ns();
    end_leftovers(&init);
    report_end(&init, ended_ns);
    return 0;
}
