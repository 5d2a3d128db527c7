/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: talk to kernd-init: listen, accept, START and SIGNAL out, reports in.
 * Owns: the connection and the pidfd of kernd-init.
 * Threads: one at a time; initlink_send_signal from any.
 * May include: base, init_wire.
 */
#include "lib/box/initlink.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

#define SEND_START_MS 5000

int initlink_listen(int dir, const char *name, struct err *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir, name);
    /* The file that bind(2) makes has the mode of the socket, less the umask. */
    if (fd < 0 || fchmod(fd, 0600) < 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0) {
        return err_set(err, ERR_IO, errno, "can't make a socket for the box: %s",
                       err_errno_text(errno));
    }
    return CLEANUP_TAKE_FD(fd);
}

int initlink_accept(struct initlink *link, int listener, struct err *err)
{
    CLEANUP_FD int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    CLEANUP_FD int pidfd = -1;
    struct ucred peer = { 0 };
    struct pollfd hangup = { .fd = fd, .events = 0 };
    socklen_t size = sizeof(peer);

    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) {
        return err_set(err, ERR_IO, errno, "no connection from the box: %s", err_errno_text(errno));
    }
    pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    /* Still connected after the pidfd was opened: so that number was not somebody else's yet. */
    if (pidfd < 0 || poll(&hangup, 1, 0) != 0) {
        return err_set(err, ERR_IO, pidfd < 0 ? errno : ESRCH, "the box's first process is gone");
    }
    link->fd = CLEANUP_TAKE_FD(fd);
    link->pidfd = CLEANUP_TAKE_FD(pidfd);
    link->pid = peer.pid;
    return 0;
}

/* Exact size of each message's body; SIZE_MAX for what kernd-init never sends. */
static size_t body_size(uint32_t type)
{
    switch (type) {
    case INIT_WIRE_HELLO:
        return sizeof(struct init_wire_hello);
    case INIT_WIRE_STARTED:
        return sizeof(struct init_wire_started);
    case INIT_WIRE_EXITED:
        return sizeof(struct init_wire_exited);
    default:
        return SIZE_MAX;
    }
}

/* One complete message. False: not at this point of the conversation. */
static bool take_message(struct initlink_report *report, uint32_t type, const void *body)
{
    struct init_wire_hello hello;

    switch (type) {
    case INIT_WIRE_HELLO:
        memcpy(&hello, body, sizeof(hello));
        if (report->hello || hello.version != INIT_WIRE_VERSION) {
            return false;
        }
        report->hello = true;
        report->landlock_abi = hello.landlock_abi;
        report->outside = hello.outside != 0;
        return true;
    case INIT_WIRE_STARTED:
        if (!report->hello || report->has_started) {
            return false;
        }
        memcpy(&report->started, body, sizeof(report->started));
        report->has_started = true;
        return true;
    default:
        if (!report->has_started || report->has_exited) {
            return false;
        }
        memcpy(&report->exited, body, sizeof(report->exited));
        report->has_exited = true;
        return true;
    }
}

size_t initlink_parse(struct initlink_report *report, const void *data, size_t size)
{
    const char *at = data;
    size_t left = size;
    struct init_wire_header header;

    while (!report->lost && left >= sizeof(header)) {
        memcpy(&header, at, sizeof(header));
        if (header.size != body_size(header.type)) {
            report->lost = true;
        } else if (left - sizeof(header) < header.size) {
            break;
        } else {
            report->lost = !take_message(report, header.type, at + sizeof(header));
            at += sizeof(header) + header.size;
            left -= sizeof(header) + header.size;
        }
    }
    return size - left;
}

int initlink_send_streams(const struct initlink *link, const int *fds, struct err *err)
{
    char space[CMSG_SPACE(INIT_WIRE_STREAMS * sizeof(int))] = { 0 };
    char byte = 0;
    struct iovec data = { .iov_base = &byte, .iov_len = 1 };
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)
    };
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);

    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(INIT_WIRE_STREAMS * sizeof(int));
    memcpy(CMSG_DATA(control), fds, INIT_WIRE_STREAMS * sizeof(int));
    /* The first bytes on a fresh connection: there is room. */
    if (sendmsg(link->fd, &message, MSG_NOSIGNAL) != 1) {
        return err_set(err, ERR_IO, errno, "can't hand over the program's streams: %s",
                       err_errno_text(errno));
    }
    return 0;
}

void initlink_hear(struct initlink *link)
{
    ssize_t got = 1;

    while (link->fd >= 0 && !link->report.lost && got > 0) {
        size_t used = 0;

        got = recv(link->fd, link->input + link->input_size, sizeof(link->input) - link->input_size,
                   MSG_DONTWAIT);
        if (got > 0) {
            link->input_size += (size_t)got;
            used = initlink_parse(&link->report, link->input, link->input_size);
            link->input_size -= used;
            memmove(link->input, link->input + used, link->input_size);
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            link->report.lost = true;
        }
    }
}

/* Writes to a non-blocking socket with a bounded wait. 0 or -1 with errno. */
static int send_all(int fd, const char *data, size_t size)
{
    int64_t deadline = clock_deadline_after_ms(SEND_START_MS);
    struct pollfd room = { .fd = fd, .events = POLLOUT };

    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent > 0) {
            data += sent;
            size -= (size_t)sent;
        } else if (errno != EAGAIN && errno != EINTR) {
            return -1;
        } else if (clock_passed(deadline)) {
            errno = ETIMEDOUT;
            return -1;
        } else {
            (void)poll(&room, 1, clock_poll_ms(deadline, -1));
        }
    }
    return 0;
}

/* Appends each string with its NUL byte. */
static int append_strings(struct buf *message, const struct strv *strings)
{
    for (size_t i = 0; i < strings->count; i++) {
        if (buf_append(message, strings->items[i], strlen(strings->items[i]) + 1) < 0) {
            return -1;
        }
    }
    return 0;
}

int initlink_send_start(struct initlink *link, const struct initlink_program *program,
                        struct err *err)
{
    struct init_wire_header header = { .type = INIT_WIRE_START };
    struct init_wire_start start = {
        .argument_count = (uint32_t)program->argv->count,
        .environment_count = (uint32_t)program->environment->count,
        .tasks = program->tasks,
        .files = INITLINK_FILES_SOFT,
        .driver_fd = program->driver_fd,
        .file_bytes = program->file_bytes,
        .pin_count = program->pins == NULL ? 0 : (uint32_t)program->pins->count,
    };
    CLEANUP_BUF struct buf message = BUF_INIT(sizeof(header) + INIT_WIRE_START_MAX);

    if (start.pin_count > INIT_WIRE_STRINGS_MAX || program->argv->count > INIT_WIRE_STRINGS_MAX ||
        program->environment->count > INIT_WIRE_STRINGS_MAX ||
        buf_append(&message, &header, sizeof(header)) < 0 ||
        buf_append(&message, &start, sizeof(start)) < 0 ||
        buf_append(&message, program->cwd, strlen(program->cwd) + 1) < 0 ||
        (program->pins != NULL && append_strings(&message, program->pins) < 0) ||
        append_strings(&message, program->argv) < 0 ||
        append_strings(&message, program->environment) < 0) {
        return err_set(err, ERR_BAD_VALUE, E2BIG,
                       "the command and its environment are larger than 4 MiB");
    }
    header.size = (uint32_t)(message.size - sizeof(header));
    memcpy(message.data, &header, sizeof(header));
    if (link->fd < 0 || send_all(link->fd, message.data, message.size) < 0) {
        return err_set(err, ERR_IO, errno, "the box did not take its program: %s",
                       err_errno_text(errno));
    }
    return 0;
}

int initlink_send_signal(const struct initlink *link, int signal_number, bool all, struct err *err)
{
    struct {
        struct init_wire_header header;
        struct init_wire_signal body;
    } message = {
        .header = { .type = INIT_WIRE_SIGNAL, .size = sizeof(message.body) },
        .body = { .signal_number = signal_number, .all = all ? 1 : 0 },
    };

    if (send(link->fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)sizeof(message)) {
        return err_set(err, ERR_IO, errno, "the box takes no signal: %s", err_errno_text(errno));
    }
    return 0;
}

void initlink_done(struct initlink *link)
{
    fd_clear(&link->fd);
    fd_clear(&link->pidfd);
    link->pid = 0;
}
