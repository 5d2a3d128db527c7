/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the stop ladder: end a box, see that it is gone, tell the outcome.
 * Owns: the box, which it frees.
 * Threads: the box's.
 * May include: base, box, ends, initlink, outcome, spawn.
 */
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/box/box_cgroup.h"
#include "lib/box/box_internal.h"
#include "lib/box/ends.h"
#include "lib/box/outcome.h"
#include "lib/box/output.h"

/* kernd-init gets this long to kill everything itself, so that the usage of what ran is known. */
#define REPORT_MS 250
/* Then SIGKILL to it; the launcher ends by itself after that, or is killed after this time. */
#define LAUNCHER_MS 2000
/* And this long until everything must be gone: a storm of processes on a busy machine takes a while
 * to die. */
#define GONE_MS 5000
#define LAST_WORDS_MAX ((uint64_t)8 * 1024 * 1024)

static void wait_for_one(int pidfd, int64_t deadline)
{
    struct pollfd dead = { .fd = pidfd, .events = POLLIN };

    (void)poll(&dead, 1, clock_poll_ms(deadline, -1));
}

static bool pidfd_dead(int pidfd)
{
    struct pollfd dead = { .fd = pidfd, .events = POLLIN };

    return pidfd < 0 || poll(&dead, 1, 0) > 0;
}

/*
 * Moves output and reports until `deadline` or any of the watched things happens. The processes are
 * those that were found alive: were they looked at again, one that died in between would be left
 * out, and nothing would end the wait.
 */
static void wait_a_while(struct box *box, struct box_io *io, int init, int launcher,
                         int64_t deadline)
{
    struct pollfd watched[] = {
        { .fd = box->stdout_fd, .events = POLLIN },
        { .fd = box->stderr_fd, .events = POLLIN },
        { .fd = box->link.report.lost ? -1 : box->link.fd, .events = POLLIN },
        { .fd = init, .events = POLLIN },
        { .fd = launcher, .events = POLLIN },
    };

    (void)poll(watched, sizeof(watched) / sizeof(watched[0]), clock_poll_ms(deadline, -1));
    if (watched[0].revents != 0) {
        (void)output_take(box, io, OUTPUT_STDOUT);
    }
    if (watched[1].revents != 0) {
        (void)output_take(box, io, OUTPUT_STDERR);
    }
    initlink_hear(&box->link);
}

/* Step 1: kernd-init kills all others, reports and exits, which ends the box. */
static void ask(struct box *box, struct box_io *io)
{
    int64_t deadline = clock_deadline_after_ms(REPORT_MS);
    const struct initlink_report *report = &box->link.report;

    if (!box->begun || report->has_exited || report->lost ||
        initlink_send_signal(&box->link, SIGKILL, true, NULL) < 0) {
        return;
    }
    while (!report->has_exited && !report->lost && !clock_passed(deadline)) {
        wait_a_while(box, io, -1, -1, deadline); /* its death ends the link */
    }
}

/* True: nothing of the box is left by the deadline. Without io nobody wants its last words, and
 * nothing is woken up for: the launcher mostly ends last. */
static bool await_gone(struct box *box, struct box_io *io, int64_t deadline)
{
    for (;;) {
        const int init = pidfd_dead(box->link.pidfd) ? -1 : box->link.pidfd;
        const int launcher = spawn_reap(&box->launcher, NULL) ? -1 : box->launcher.pidfd;

        if (init < 0 && launcher < 0) {
            return true;
        }
        if (clock_passed(deadline)) {
            return false;
        }
        if (io == NULL) {
            wait_for_one(launcher >= 0 ? launcher : init, deadline);
        } else {
            wait_a_while(box, io, init, launcher, deadline);
        }
    }
}

/* Nothing but kernd-init is left, and it is about to exit. */
static bool is_settled(const struct box *box)
{
    const struct initlink_report *report = &box->link.report;

    return report->has_exited && report->exited.alone != 0;
}

/*
 * Step 2: SIGKILL to PID 1 of the box, with which the kernel ends all others in its namespace
 * before PID 1 itself counts as dead (pid_namespaces(7)). The launcher then reaps it and ends:
 * killed first, it would leave a zombie to the host's PID 1, which in a container may reap nothing.
 * Step 3: the launcher too. True: all gone.
 */
static bool kill_all(struct box *box, struct box_io *io)
{
    /* PID 1 of such a box is ending by itself. */
    if (is_settled(box) && await_gone(box, io, clock_deadline_after_ms(REPORT_MS))) {
        return true;
    }
    (void)syscall(SYS_pidfd_send_signal, box->link.pidfd, SIGKILL, NULL, 0);
    if (await_gone(box, io, clock_deadline_after_ms(LAUNCHER_MS))) {
        return true;
    }
    box_cgroup_kill(box);
    spawn_kill(&box->launcher);
    return await_gone(box, io, clock_deadline_after_ms(GONE_MS));
}

/*
 * A box that the kernel killed whole may leave its PID 1 without the launcher that would have
 * reaped it: then it is ours if we are PID 1 of a container, else the host's.
 */
static void adopt_orphan(const struct box *box)
{
    siginfo_t info;

    if (box->link.pidfd >= 0) {
        (void)waitid(P_PIDFD, (id_t)box->link.pidfd, &info, WEXITED | WNOHANG);
    }
}

static struct outcome_facts gather(const struct box *box, bool gone)
{
    const struct watchdog *watchdog = &box->watchdog;
    struct cgroup_usage usage;

    box_cgroup_read(box, &usage);
    return (struct outcome_facts){
        .stop = box->stop,
        .pumped = box->pumped,
        .ended_ns = clock_mono_ns(),
        .gone = gone,
        .memory_cap = box->limits.memory_bytes,
        .over_bytes = watchdog->over_bytes,
        .over_processes = watchdog->over_processes,
        .peak_bytes = watchdog->peak_tasks > 0 ? (int64_t)watchdog->peak_bytes : -1,
        .peak_pids = watchdog->peak_tasks > 0 ? (int64_t)watchdog->peak_tasks : -1,
        .disk_cap = box->limits.disk_bytes,
        .disk_bytes = box->diskwatch.over_bytes,
        .files_cap = box->boxes->files_max,
        .files = box->diskwatch.over_files,
        .usage = usage,
    };
}

void box_end_settle(struct box *box, struct box_io *io, struct box_outcome *ret_outcome)
{
    struct outcome_facts facts;
    bool settled = false;

    if (box->frozen) {
        (void)box_cgroup_freeze(box, false); /* kernd-init shall hear what follows */
    }
    ask(box, io);
    settled = is_settled(box) || kill_all(box, io);
    output_drain(box, io, LAST_WORDS_MAX);
    initlink_hear(&box->link);
    facts = gather(box, settled);
    outcome_judge(&box->link.report, &facts, ret_outcome);
}

bool box_end_leave(struct box *box)
{
    bool gone;

    if (box == NULL) {
        return true;
    }
    gone = kill_all(box, NULL);
    ends_hear_report(box);
    adopt_orphan(box);
    if (!box_cgroup_remove(box) || !gone) {
        log_line(LOG_DEBUG, "box_not_gone", "box", box->id, NULL);
    }
    box_release(box);
    return gone;
}

void box_end(struct box *box, struct box_io *io, struct box_outcome *ret_outcome)
{
    box_end_settle(box, io, ret_outcome);
    (void)box_end_leave(box);
}
