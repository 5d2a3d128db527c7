/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: start a launcher: a child that executes it.
 * Owns: nothing; the child and its descriptors are the caller's.
 * Threads: any; the child dies with the thread that called.
 * May include: base, clone.
 */
#include "lib/box/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/box/clone.h"

/* Above every descriptor number of the child, so that dup3 never hits one it still needs. */
#define ASIDE 256
#define CHILD_FAILED 127

/* As many descriptors a child may have if we may not have twice as many. */
#define FILES_LEAST 4096

/* What the child knows of its task. */
struct birth {
    const struct spawn_request *request;
    int report_fd;
    pid_t parent;
    struct rlimit files;
};

/* Held for reading while a child is between clone3 and exec. Nothing else is taken beneath it; who
 * waits for it holds nothing. Writers first: else calls that overlap would keep one waiting. */
static pthread_rwlock_t starting = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

/* struct sigaction as the kernel has it (rt_sigaction(2)); all zero is SIG_DFL. */
struct kernel_sigaction {
    unsigned long words[4];
};

/* Handlers are gone by CLONE_CLEAR_SIGHAND; what the daemon ignores (SIGPIPE) is inherited. */
CLONE_CHILD static void reset_signals(void)
{
    struct kernel_sigaction action = { { 0 } };
    uint64_t none = 0;

    for (long number = 1; number < NSIG; number++) {
        (void)syscall(SYS_rt_sigaction, number, &action, NULL, sizeof(none));
    }
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
}

/* Moves the given descriptors to 0, 1, ... and closes all others but report_fd, which ends up
 * behind them, close-on-exec. Its new number, or -1. */
CLONE_CHILD static int place_fds(const struct spawn_request *request, int report_fd)
{
    int last = (int)request->fd_count;
    int report = (int)syscall(SYS_fcntl, report_fd, F_DUPFD_CLOEXEC, ASIDE);
    int aside[SPAWN_FDS_MAX];

    for (int i = 0; i < last; i++) {
        aside[i] = (int)syscall(SYS_fcntl, request->fds[i], F_DUPFD_CLOEXEC, ASIDE);
        if (aside[i] < 0) {
            return -1;
        }
    }
    for (int i = 0; i < last; i++) {
        if (syscall(SYS_dup3, aside[i], i, 0) < 0) {
            return -1;
        }
    }
    if (report < 0 || syscall(SYS_dup3, report, last, O_CLOEXEC) < 0 ||
        syscall(SYS_close_range, last + 1, UINT_MAX, 0) < 0) {
        return -1;
    }
    return last;
}

/* Whatever the launcher starts inherits it. Without it the kernel would judge by size alone. */
CLONE_CHILD static void raise_oom_score(void)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)syscall(SYS_write, fd, SPAWN_OOM_SCORE, sizeof(SPAWN_OOM_SCORE) - 1);
        (void)syscall(SYS_close, fd);
    }
}

/*
 * Half of our own. A user may have no more descriptors under way in sockets (SCM_RIGHTS) than the
 * limit of who sends the next one (too_many_unix_fds(), net/unix in the kernel), and what boxes
 * have under way counts: with as many as we have, one could keep us from handing any to the others.
 */
static struct rlimit files_of_child(void)
{
    struct rlimit files = { .rlim_cur = FILES_LEAST, .rlim_max = FILES_LEAST };
    rlim_t most;

    (void)getrlimit(RLIMIT_NOFILE, &files);
    most = files.rlim_cur / 2 > FILES_LEAST ? files.rlim_cur / 2 : FILES_LEAST;
    most = most < files.rlim_cur ? most : files.rlim_cur;
    return (struct rlimit){ .rlim_cur = most, .rlim_max = most };
}

CLONE_CHILD static void run_child(void *context)
{
    const struct birth *birth = context;
    const struct spawn_request *request = birth->request;
    int reason = 0;
    int placed = -1;

    (void)syscall(SYS_setpgid, 0, 0);
    if (!request->ends_with_parent) {
        (void)syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    }
    /* The parent may have died already. */
    if (syscall(SYS_getppid) == birth->parent) {
        raise_oom_score();
        placed = place_fds(request, birth->report_fd);
        (void)syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &birth->files, NULL);
        reset_signals();
        if (placed >= 0) {
            (void)syscall(SYS_execve, request->path, request->argv, request->environment);
        }
        reason = errno;
        (void)syscall(SYS_write, placed >= 0 ? placed : birth->report_fd, &reason, sizeof(reason));
    }
    for (;;) {
        (void)syscall(SYS_exit_group, CHILD_FAILED);
    }
}

void spawn_settle(void)
{
    (void)pthread_rwlock_wrlock(&starting);
    (void)pthread_rwlock_unlock(&starting);
}

int spawn_start(const struct spawn_request *request, struct spawn_child *ret_child, struct err *err)
{
    CLEANUP_FD int report_read = -1;
    CLEANUP_FD int report_write = -1;
    int pidfd = -1;
    struct clone_args arguments = {
        .flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
        .pidfd = (uint64_t)(uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
    };
    struct birth birth = { .request = request, .parent = getpid(), .files = files_of_child() };
    long pid = -1;
    int reason = 0;

    if (request->fd_count > SPAWN_FDS_MAX || fd_pipe(&report_read, &report_write) < 0) {
        return err_set(err, ERR_IO, errno, "no descriptor left to start a process");
    }
    if (request->cgroup_fd >= 0) {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = (unsigned)request->cgroup_fd;
    }
    birth.report_fd = report_write;
    (void)pthread_rwlock_rdlock(&starting);
    pid = clone_start(&arguments, run_child, &birth);
    reason = errno;
    (void)pthread_rwlock_unlock(&starting);
    if (pid < 0) {
        return err_set(err, ERR_IO, reason, "can't make a process: %s", err_errno_text(reason));
    }
    (void)fd_set_nonblocking(report_read, true);
    ret_child->pid = (pid_t)pid;
    ret_child->pidfd = pidfd;
    ret_child->exec_error = CLEANUP_TAKE_FD(report_read);
    return 0;
}

int spawn_exec_errno(const struct spawn_child *child)
{
    int reason = 0;

    return read(child->exec_error, &reason, sizeof(reason)) == (ssize_t)sizeof(reason) ? reason : 0;
}

void spawn_kill(const struct spawn_child *child)
{
    if (child->pid > 0) {
        /* The group may not exist yet, or hold only this process: do both. */
        (void)kill(-child->pid, SIGKILL);
        (void)syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
    }
}

bool spawn_reap(struct spawn_child *child, int *ret_status)
{
    int status = 0;

    if (child->pid > 0) {
        if (waitpid(child->pid, &status, WNOHANG) == 0) {
            return false;
        }
        if (ret_status != NULL) {
            *ret_status = status;
        }
        child->pid = 0;
    }
    return true;
}

bool spawn_await(struct spawn_child *child, int64_t deadline)
{
    struct pollfd dead = { .fd = child->pidfd, .events = POLLIN };

    while (!spawn_reap(child, NULL)) {
        if (clock_passed(deadline)) {
            return false;
        }
        (void)poll(&dead, 1, clock_poll_ms(deadline, -1));
    }
    return true;
}

void spawn_done(struct spawn_child *child)
{
    fd_clear(&child->pidfd);
    fd_clear(&child->exec_error);
}
