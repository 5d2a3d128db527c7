/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a launcher: what it finds, what its parent keeps, and that starts elsewhere keep no
 * written file busy. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/box/spawn.h"
#include "tests/unit/scratch.h"

#define PROGRAM "/usr/bin/true"
#define PROGRAM_MAX (1 << 20)
#define WAIT_S 60
#define ROUNDS 500
#define STATUS_MAX ((size_t)16384)

static struct spawn_child start(const char *path, int *ret_reason)
{
    char *const argv[] = { alloc_text(path), NULL };
    char *const environment[] = { NULL };
    const struct spawn_request request = { .path = path,
                                           .argv = argv,
                                           .environment = environment,
                                           .cgroup_fd = -1,
                                           .ends_with_parent = true };
    struct spawn_child child = { 0 };

    assert_int_equal(spawn_start(&request, &child, NULL), 0);
    *ret_reason = spawn_exec_errno(&child);
    free(argv[0]);
    return child;
}

static int run(const char *path)
{
    int reason;
    struct spawn_child child = start(path, &reason);

    assert_true(spawn_await(&child, clock_deadline_after_s(WAIT_S)));
    spawn_done(&child);
    return reason;
}

static void a_start_tells_whether_exec_worked(void **state)
{
    (void)state;
    assert_int_equal(run(PROGRAM), 0);
    assert_int_equal(run("/nonexistent"), ENOENT);
    assert_int_equal(run("/"), EACCES);
}

/* What a file tells a program that reads it, in a string that is the caller's. */
static char *read_by_a_child(const char *path)
{
    char *const argv[] = { alloc_text("cat"), alloc_text(path), NULL };
    char *const environment[] = { NULL };
    char *text = alloc_zero(1, STATUS_MAX + 1);
    int ends[2];
    struct spawn_child child = { 0 };
    size_t size = 0;
    ssize_t more = 1;

    assert_int_equal(fd_pipe(&ends[0], &ends[1]), 0);
    {
        const int fds[] = { ends[0], ends[1], ends[1] };
        const struct spawn_request request = { .path = "/usr/bin/cat",
                                               .argv = argv,
                                               .environment = environment,
                                               .fds = fds,
                                               .fd_count = 3,
                                               .cgroup_fd = -1 };

        assert_int_equal(spawn_start(&request, &child, NULL), 0);
    }
    assert_int_equal(close(ends[1]), 0);
    while (more > 0 && size < STATUS_MAX) {
        more = read(ends[0], text + size, STATUS_MAX - size);
        size += more > 0 ? (size_t)more : 0;
    }
    assert_int_equal(close(ends[0]), 0);
    assert_true(spawn_await(&child, clock_deadline_after_s(WAIT_S)));
    spawn_done(&child);
    free(argv[0]);
    free(argv[1]);
    return text;
}

static void note(int number)
{
    (void)number;
}

/* The child begins in our memory, with what our thread blocks, handles and ignores. */
static void a_start_changes_no_signal_here_and_passes_none_on(void **state)
{
    const struct sigaction handled = { .sa_handler = note };
    const struct sigaction ignored = { .sa_handler = SIG_IGN };
    struct sigaction after;
    sigset_t blocked;
    sigset_t now;
    char *status;

    (void)state;
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &blocked, NULL), 0);
    assert_int_equal(sigaction(SIGUSR2, &handled, NULL), 0);
    assert_int_equal(sigaction(SIGPIPE, &ignored, NULL), 0);
    status = read_by_a_child("/proc/self/status");
    assert_non_null(strstr(status, "SigBlk:\t0000000000000000\n"));
    assert_non_null(strstr(status, "SigIgn:\t0000000000000000\n"));
    assert_non_null(strstr(status, "SigCgt:\t0000000000000000\n"));
    free(status);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
    assert_true(sigismember(&now, SIGUSR1));
    assert_false(sigismember(&now, SIGUSR2));
    assert_false(sigismember(&now, SIGTERM));
    assert_int_equal(sigaction(SIGUSR2, NULL, &after), 0);
    assert_ptr_equal(after.sa_handler, note);
    assert_int_equal(sigaction(SIGPIPE, NULL, &after), 0);
    assert_ptr_equal(after.sa_handler, SIG_IGN);
}

/* Else what it sends to others could keep us from sending: spawn.c. */
static void a_child_may_open_half_as_many_files_as_we(void **state)
{
    static const rlim_t ours[] = { 10000, 5000, 1024 };
    static const rlim_t theirs[] = { 5000, 4096, 1024 };
    struct rlimit before;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        const struct rlimit own = { .rlim_cur = ours[i], .rlim_max = before.rlim_max };
        CLEANUP_FREE char *limits = NULL;
        char wanted[128];

        assert_int_equal(setrlimit(RLIMIT_NOFILE, &own), 0);
        limits = read_by_a_child("/proc/self/limits");
        (void)snprintf(wanted, sizeof(wanted), "Max open files            %-20llu %-20llu ",
                       (unsigned long long)theirs[i], (unsigned long long)theirs[i]);
        assert_non_null(strstr(limits, wanted));
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void *start_and_start(void *context)
{
    atomic_bool *over = context;

    while (!atomic_load(over)) {
        (void)run(PROGRAM);
    }
    return NULL;
}

/* As the files of a call: written, closed, and executed at once. */
static void a_written_program_can_be_executed(void **state)
{
    static char bytes[PROGRAM_MAX];
    char *path = alloc_printf("%s/program", scratch_path);
    int source = open(PROGRAM, O_RDONLY | O_CLOEXEC);
    ssize_t size = read(source, bytes, sizeof(bytes));
    atomic_bool over = false;
    pthread_t others[2];

    (void)state;
    assert_true(size > 0 && size < PROGRAM_MAX);
    (void)close(source);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&others[i], NULL, start_and_start, &over), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

        assert_int_equal(write(fd, bytes, (size_t)size), size);
        assert_int_equal(close(fd), 0);
        spawn_settle();
        assert_int_equal(run(path), 0);
        assert_int_equal(unlink(path), 0);
    }
    atomic_store(&over, true);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(others[i], NULL), 0);
    }
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_start_tells_whether_exec_worked, scratch_fresh),
        cmocka_unit_test_setup(a_start_changes_no_signal_here_and_passes_none_on, scratch_fresh),
        cmocka_unit_test_setup(a_child_may_open_half_as_many_files_as_we, scratch_fresh),
        cmocka_unit_test_setup(a_written_program_can_be_executed, scratch_fresh),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
