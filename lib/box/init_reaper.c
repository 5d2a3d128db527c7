/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: what PID 1 of a box does while its program runs: reap, forward signals, report the end.
 * Owns: the connection to kernd; its end, at either side, is the end of the box.
 * Threads: one.
 * May include: base, init.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/box/init.h"

/*
 * How long what the program left running may go on: a child that it forked and did not wait for is
 * mostly about to end, and what it has to say would be lost.
 */
#define GRACE_MS 50
/* How long it may then take to die before the report goes out without it. */
#define LEFTOVERS_MS 200

bool init_reaper_open(struct init_reaper *reaper)
{
    sigset_t set;

    *reaper = (struct init_reaper){ .connection = -1, .children = -1, .program = -1 };
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_SETMASK, &set, NULL) < 0) {
        return false;
    }
    reaper->children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return reaper->children >= 0;
}

/* Reaps whatever is dead. False once there are no children at all. */
static bool reap(struct init_reaper *reaper)
{
    int status = 0;
    pid_t pid = 0;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == reaper->program) {
            reaper->wait_status = status;
            reaper->ended = true;
        }
    }
    return pid == 0;
}

/* Waits for a death, at most this long. */
static void wait_for_death(struct init_reaper *reaper, int timeout_ms)
{
    struct pollfd watched = { .fd = reaper->children, .events = POLLIN };
    struct signalfd_siginfo info;

    if (poll(&watched, 1, timeout_ms) > 0) {
        ssize_t ignored = read(reaper->children, &info, sizeof(info));

        (void)ignored;
    }
}

/* A message of kernd. False: it went away, or speaks something else. */
static bool obey(struct init_reaper *reaper)
{
    struct init_wire_header header;
    struct init_wire_signal message;

    if (fd_read_full(reaper->connection, &header, sizeof(header)) < 0 ||
        header.type != INIT_WIRE_SIGNAL || header.size != sizeof(message) ||
        fd_read_full(reaper->connection, &message, sizeof(message)) < 0) {
        return false;
    }
    if (message.signal_number >= 0 && message.signal_number < NSIG &&
        (message.all != 0 || !reaper->ended)) {
        /* -1 is everybody in this namespace but PID 1 (kill(2)). */
        (void)kill(message.all != 0 ? -1 : reaper->program, message.signal_number);
    }
    return true;
}

/* Waits for anything and does what is to be done. False: kernd is gone. */
static bool attend(struct init_reaper *reaper, bool *ret_children)
{
    struct pollfd watched[2] = {
        { .fd = reaper->connection, .events = POLLIN },
        { .fd = reaper->children, .events = POLLIN },
    };

    if (poll(watched, 2, -1) < 0 && errno != EINTR) {
        return false;
    }
    if (watched[1].revents != 0) {
        wait_for_death(reaper, 0);
        *ret_children = reap(reaper);
    }
    return watched[0].revents == 0 || obey(reaper);
}

static bool run_until_end(struct init_reaper *reaper)
{
    bool children = true;

    while (!reaper->ended) {
        if (!attend(reaper, &children) && !reaper->ended) {
            return false;
        }
    }
    return true;
}

/* Waits until no process is left, at most this long. False: some are. */
static bool await_none(struct init_reaper *reaper, int64_t limit_ms)
{
    int64_t deadline = clock_deadline_after_ms(limit_ms);

    while (reap(reaper)) {
        if (clock_passed(deadline)) {
            return false;
        }
        wait_for_death(reaper, clock_poll_ms(deadline, -1));
    }
    return true;
}

/* Ends what the program left running, so that its usage counts and nothing writes any more. */
static void end_leftovers(struct init_reaper *reaper)
{
    reaper->alone = await_none(reaper, GRACE_MS);
    if (!reaper->alone) {
        /* Nobody escapes by a fork: one that is to be killed does not fork any more (fork(2) fails
         * with ERESTARTNOINTR), and orphans come to this process. */
        (void)kill(-1, SIGKILL);
        reaper->alone = await_none(reaper, LEFTOVERS_MS);
    }
}

static int64_t microseconds(const struct timeval *time)
{
    return (int64_t)time->tv_sec * 1000000 + time->tv_usec;
}

static void report_end(struct init_reaper *reaper, int64_t at_ns)
{
    struct init_wire_exited exited = { .wait_status = reaper->wait_status,
                                       .alone = reaper->alone ? 1 : 0,
                                       .at_ns = at_ns };
    struct rusage usage;

    if (getrusage(RUSAGE_CHILDREN, &usage) == 0) {
        exited.cpu_user_us = microseconds(&usage.ru_utime);
        exited.cpu_system_us = microseconds(&usage.ru_stime);
        exited.max_rss_bytes = (int64_t)usage.ru_maxrss * 1024;
    }
    (void)init_send(reaper->connection, INIT_WIRE_EXITED, &exited, sizeof(exited));
}

/* Boxes that a template made go on without it; they are reaped here, and end with this process. */
static void outlast(struct init_reaper *reaper)
{
    bool children = reap(reaper);

    while (children && attend(reaper, &children)) {
    }
}

bool init_reaper_run(struct init_reaper *reaper, bool outlasts)
{
    int64_t ended_ns;

    if (!run_until_end(reaper)) {
        return false;
    }
    ended_ns = clock_mono_ns();
    if (!outlasts) {
        end_leftovers(reaper);
    }
    report_end(reaper, ended_ns);
    if (outlasts) {
        outlast(reaper);
    }
    return true;
}
