/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: descriptors, limits and signals of the process.
 * Owns: nothing; the signal descriptor is the caller's.
 * Threads: main.
 * May include: lib/base.
 */
#include "server/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define DESCRIPTORS 65536

static void open_standard_descriptors(void)
{
    int fd;

    /* open gives the lowest free number, and these three are meant to be inherited. */
    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
    if (fd > STDERR_FILENO) {
        (void)close(fd);
    }
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < DESCRIPTORS) {
        limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void process_prepare(unsigned inherited)
{
    /* Not 0: whoever handles crashes behind a pipe (core(5)) gets the memory of whatever crashes,
     * as root, except at exactly 1 (fs/coredump.c); and no box can have more than kernd has. */
    const struct rlimit no_core = { .rlim_cur = 1, .rlim_max = 1 };
    const struct sigaction ignore = { .sa_handler = SIG_IGN };

    open_standard_descriptors();
    (void)close_range(STDERR_FILENO + 1 + inherited, ~0U, 0);
    (void)umask(077);
    (void)sigaction(SIGPIPE, &ignore, NULL);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    raise_descriptor_limit();
}

int process_signals(struct err *err)
{
    sigset_t signals;
    int fd;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    return fd >= 0 ? fd : err_set(err, ERR_IO, errno, "signalfd: %s", err_errno_text(errno));
}

unsigned process_read_signals(int signal_fd)
{
    struct signalfd_siginfo info;
    unsigned count = 0;

    while (read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        count++;
    }
    return count;
}
