/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: have a fork of the template at hand for its next order.
 * Owns: the pipe between the two.
 * Threads: one.
 * May include: base, template.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/box/template.h"

/* So long without an order, and what was forked last is on its way. */
#define QUIET_MS 5
/* And behind an order that nobody waited for: the next one may be such another, which gains nothing
 * by a standby and pays for it. */
#define QUIET_AHEAD_MS 250
/* What a standby tells of its order. */
#define TOLD_ORDER 1
#define TOLD_AHEAD 2

static bool is_quiet(int connection, int for_ms)
{
    struct pollfd watched = { .fd = connection, .events = POLLIN };

    return poll(&watched, 1, for_ms) == 0;
}

bool template_standby_wanted(struct template *template, int connection)
{
    if (template->is_standby || !is_quiet(connection, QUIET_MS)) {
        return false;
    }
    /* An order that comes without either is told why. */
    return template_network_renew(template) && template->has_standbys && !template->lost_standby &&
           (!template->was_ahead || is_quiet(connection, QUIET_AHEAD_MS)) &&
           template_check_again() == NULL;
}

/* A standby without a template would take orders that nobody looks after. */
static void end_with(pid_t template)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != template) {
        _exit(1);
    }
}

bool template_standby_fork(struct template *template)
{
    const pid_t own = getpid();
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0) {
        return false;
    }
    pid = fork();
    template->is_standby = pid == 0;
    template->standby = ends[pid == 0 ? 1 : 0];
    fd_close(ends[pid == 0 ? 0 : 1]);
    if (pid == 0) {
        end_with(own);
    } else if (pid < 0) {
        fd_close(template->standby);
    }
    return pid > 0;
}

void template_standby_tell(struct template *template, const struct template_wire_fork *order)
{
    const char told = order->ahead != 0 ? TOLD_AHEAD : TOLD_ORDER;
    ssize_t ignored = -1;

    if (template->is_standby) {
        ignored = write(template->standby, &told, sizeof(told));
    } else {
        template->lost_standby = false;
        template->was_ahead = order->ahead != 0;
    }
    (void)ignored;
}

void template_standby_end(const struct template *template)
{
    if (template->is_standby) {
        _exit(0);
    }
}

bool template_standby_await(struct template *template)
{
    char told = 0;
    bool has_order = false;
    ssize_t got;

    /* Nobody but the standby has the other end, and the kernel closes it behind its memory
     * (do_exit() in kernel/exit.c). */
    do {
        got = read(template->standby, &told, sizeof(told));
        has_order = has_order || got > 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    fd_close(template->standby);
    template->lost_standby = !has_order;
    template->was_ahead = told == TOLD_AHEAD;
    template->has_new_network = false; /* it was the standby's, too */
    return has_order;
}
