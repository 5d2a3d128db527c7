/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: signals, limits and session of a box's program, the same however it comes to be.
 * Owns: nothing.
 * Threads: one.
 * May include: base, init.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/box/init.h"

#define FILES_HARD_MAX ((rlim_t)65536)
/* The usual one; the daemon's own is stricter. */
#define FILE_MASK 022

/* PID 1 blocks SIGCHLD, and launchers may leave signals ignored; neither is for the program. */
void init_state_signals(void)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;

    for (int number = 1; number < NSIG; number++) {
        (void)sigaction(number, &action, NULL);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A type of its own in glibc, where getrlimit(2) takes no other; an int in musl. */
#ifdef __GLIBC__
typedef __rlimit_resource_t resource_t;
#else
typedef int resource_t;
#endif

/* Lowers a limit, never above what is already the hard one. */
static void limit(resource_t resource, rlim_t soft, rlim_t hard)
{
    struct rlimit value;

    if (getrlimit(resource, &value) < 0) {
        return;
    }
    value.rlim_max = hard < value.rlim_max ? hard : value.rlim_max;
    value.rlim_cur = soft < value.rlim_max ? soft : value.rlim_max;
    (void)setrlimit(resource, &value);
}

void init_state_limits(const struct init_wire_start *limits)
{
    /* Not 0: a crash handler behind a pipe (core(5)) is started whatever the limit is, as root and
     * outside the box, except at exactly 1 (fs/coredump.c). No core file fits one byte either. */
    limit(RLIMIT_CORE, 1, 1);
    limit(RLIMIT_NOFILE, limits->files, FILES_HARD_MAX);
    if (limits->file_bytes > 0) {
        limit(RLIMIT_FSIZE, limits->file_bytes, limits->file_bytes);
    }
    if (limits->tasks > 0) {
        /* Counted per user and user namespace (Linux 5.14), so kernd-init is one of them. */
        limit(RLIMIT_NPROC, (rlim_t)limits->tasks + 1, (rlim_t)limits->tasks + 1);
    }
}

void init_state_process(void)
{
    (void)setsid();
    (void)umask(FILE_MASK);
}
