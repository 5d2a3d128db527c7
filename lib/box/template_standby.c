/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: have a fork of the template at hand for its next order.
 * Owns: the pipe between the two, and the way of its box to the template.
 * Threads: one.
 * May include: base, template.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

bool template_standby_prepare(struct template *template)
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, template->boxes) == 0;
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

void template_standby_hand_box(const struct template *template)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .bytes = { 0 } };
    char byte = 0; /* descriptors come with something */
    struct iovec data = { .iov_base = &byte, .iov_len = sizeof(byte) };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    int box = (int)syscall(SYS_pidfd_open, getpid(), 0);
    ssize_t ignored = -1;

    if (box >= 0) {
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &box, sizeof(box));
        ignored = sendmsg(template->boxes[1], &message, MSG_NOSIGNAL);
    }
    (void)ignored;
}

/* What PID 1 of the last standby's box has sent; -1: nothing. */
static int take_box(const struct template *template)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    char byte = 0;
    struct iovec data = { .iov_base = &byte, .iov_len = sizeof(byte) };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    int box = -1;

    if (recvmsg(template->boxes[0], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) > 0 &&
        CMSG_FIRSTHDR(&message) != NULL) {
        memcpy(&box, CMSG_DATA(&control.header), sizeof(box));
    }
    return box;
}

bool template_standby_await(struct template *template)
{
    char told = 0;
    bool has_order = false;
    ssize_t got;

    /* Nobody but the standby, and PID 1 of its box until it has sent what it has to, has the other
     * end, and the kernel closes it behind its memory (do_exit() in kernel/exit.c). */
    do {
        got = read(template->standby, &told, sizeof(told));
        has_order = has_order || got > 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    fd_close(template->standby);
    template->lost_standby = !has_order;
    template->was_ahead = told == TOLD_AHEAD;
    template_network_keep(template, take_box(template)); /* it was the standby's, too */
    return has_order;
}
