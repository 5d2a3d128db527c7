/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: start, stop and look at the server of a state directory.
 * Owns: nothing that lasts.
 * Threads: one.
 * May include: server, lib/base.
 */
#include "server/control.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "server/connect.h"
#include "server/dirs.h"

#define EXIT_USAGE 2
#define EXIT_NOT_RUNNING 3 /* as LSB's init scripts say it */
#define ANSWER_S 20
/* Grace time, the boxes' end, the last writes. */
#define STOP_LIMIT_S 60.0
#define SMALL_FILE ((size_t)4096)

static int complain(const char *name, const struct err *err, int status)
{
    (void)fprintf(stderr, "kernd %s: %s\n", name, err->msg);
    if (err->remedy[0] != '\0') {
        (void)fprintf(stderr, "kernd %s: %s\n", name, err->remedy);
    }
    return status;
}

/* ---- looking ---- */

/* Does the server at the other end answer? A socket is there before it does. */
static bool answers(int fd)
{
    static const char request[] =
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    static const char wanted[] = "HTTP/1.1 200 ";
    const struct timeval limit = { .tv_sec = ANSWER_S };
    char answer[sizeof(wanted) - 1];

    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
           send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(request) - 1 &&
           recv(fd, answer, sizeof(answer), MSG_WAITALL) == (ssize_t)sizeof(answer) &&
           memcmp(answer, wanted, sizeof(answer)) == 0;
}

/* Is the process in the cgroup of this unit? Then systemd starts it again. */
static bool is_activated(pid_t pid)
{
    CLEANUP_FREE char *path = alloc_printf("/proc/%d/cgroup", (int)pid);
    CLEANUP_FREE char *text = fd_read_file(path, SMALL_FILE, NULL);

    return text != NULL && strstr(text, "/kernd.service") != NULL;
}

/* What the server said when it was ready: "url=... socket=... token=...". */
static void tell(const struct connect *way, pid_t pid)
{
    CLEANUP_FREE char *path = alloc_printf("%s/ready", way->runtime_dir);
    CLEANUP_FREE char *text = fd_read_file(path, SMALL_FILE, NULL);

    (void)printf("running pid=%d", (int)pid);
    if (text != NULL) {
        text[strcspn(text, "\n")] = '\0';
        (void)printf(" %s", text);
    } else {
        (void)printf(" socket=%s token=%s", way->socket, way->token);
    }
    if (is_activated(pid)) {
        (void)printf(" unit=kernd.service\n");
    } else {
        (void)printf(" log=%s\n", way->log);
    }
}

/* ---- start ---- */

static int start(const char *name, struct connect *way)
{
    struct err err = ERR_INIT;
    CLEANUP_FD int fd = -1;

    /* Who starts it by hand wants it to stay. */
    if (!way->idle_exit_given) {
        strv_add(&way->serve, "--idle-exit=0");
    }
    fd = connect_open(way, &err);
    if (fd < 0) {
        return complain(name, &err, EXIT_FAILURE);
    }
    if (!answers(fd)) {
        (void)err_set(&err, ERR_IO, 0, "the server at %.200s does not answer", way->socket);
        (void)err_remedy(&err, "its log may tell why: %.200s", way->log);
        return complain(name, &err, EXIT_FAILURE);
    }
    tell(way, dirs_lock_owner(way->state_dir));
    return EXIT_SUCCESS;
}

/* ---- stop ---- */

/* A descriptor of the process that holds the lock, -1 for none. */
static int open_owner(const struct connect *way, pid_t *ret_pid)
{
    const pid_t pid = dirs_lock_owner(way->state_dir);
    const int fd = pid > 0 ? pidfd_open(pid, 0) : -1;

    /* The process of that number is the owner if it still is, now that it can't be another. */
    if (fd >= 0 && dirs_lock_owner(way->state_dir) == pid) {
        *ret_pid = pid;
        return fd;
    }
    fd_close(fd);
    return -1;
}

/* A pidfd is readable when its process has ended (pidfd_open(2)). */
static bool wait_for_end(int process)
{
    struct pollfd poll_end = { .fd = process, .events = POLLIN };
    const int64_t deadline = clock_deadline_after_s(STOP_LIMIT_S);
    int ready;

    do {
        ready = poll(&poll_end, 1, clock_poll_ms(deadline, -1));
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

static int stop(const char *name, const struct connect *way)
{
    struct err err = ERR_INIT;
    pid_t pid = 0;
    CLEANUP_FD int process = open_owner(way, &pid);
    bool comes_again;

    if (process < 0) {
        (void)printf("not running\n");
        return EXIT_SUCCESS;
    }
    comes_again = is_activated(pid);
    if (pidfd_send_signal(process, SIGTERM, NULL, 0) < 0 && errno != ESRCH) {
        (void)err_set(&err, ERR_IO, errno, "process %d can't be stopped: %s", (int)pid,
                      err_errno_text(errno));
        return complain(name, &err, EXIT_FAILURE);
    }
    if (!wait_for_end(process)) {
        (void)err_set(&err, ERR_IO, 0, "process %d has not ended after %.0f s", (int)pid,
                      STOP_LIMIT_S);
        return complain(name, &err, EXIT_FAILURE);
    }
    (void)printf("stopped pid=%d\n", (int)pid);
    if (comes_again) {
        (void)printf("the next client starts it again: systemctl --user stop kernd.socket\n");
    }
    return EXIT_SUCCESS;
}

/* ---- the commands ---- */

static int with_way(const char *name, int count, char *const *options,
                    int (*work)(const char *name, struct connect *way))
{
    struct err err = ERR_INIT;
    struct connect way;
    int status;

    if (connect_find(&way, count, options, &err) < 0) {
        status = complain(name, &err, EXIT_USAGE);
    } else {
        status = work(name, &way);
    }
    connect_done(&way);
    return status;
}

static int work_stop(const char *name, struct connect *way)
{
    return stop(name, way);
}

static int work_restart(const char *name, struct connect *way)
{
    const int status = stop(name, way);

    return status == EXIT_SUCCESS ? start(name, way) : status;
}

static int work_status(const char *name, struct connect *way)
{
    const pid_t pid = dirs_lock_owner(way->state_dir);
    CLEANUP_FD int fd = pid > 0 ? connect_try(way) : -1;

    (void)name;
    if (pid <= 0) {
        (void)printf("not running\n");
        return EXIT_NOT_RUNNING;
    }
    if (fd < 0 || !answers(fd)) {
        (void)printf("running pid=%d, but it does not answer at %s\n", (int)pid, way->socket);
        return EXIT_FAILURE;
    }
    tell(way, pid);
    return EXIT_SUCCESS;
}

int control_start(int count, char *const *options)
{
    return with_way("start", count, options, start);
}

int control_stop(int count, char *const *options)
{
    return with_way("stop", count, options, work_stop);
}

int control_restart(int count, char *const *options)
{
    return with_way("restart", count, options, work_restart);
}

int control_status(int count, char *const *options)
{
    return with_way("status", count, options, work_status);
}
