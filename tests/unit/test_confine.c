/* SPDX-License-Identifier: Apache-2.0 */
/* What a confined thread may not do, what it still can, and whom it concerns. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/fd.h"
#include "lib/box/confine.h"
#include "lib/box/errand.h"
#include "lib/box/launcher.h"

/* Asserts of cmocka jump: they belong to the test's own thread, so threads only take notes. */
struct notes {
    struct err err;
    int confined;
    int errors[32]; /* errno of each call below, 0: it was done */
    int child_error;
    int mapped;
};

/* By number, since libc has no wrapper for most. Arguments that would fail anyway do no harm. */
struct attempt {
    const char *name;
    long number;
    long arguments[5];
    int error; /* the filter's, or what the kernel says of these arguments, past the filter */
};

static const struct attempt refused[] = {
    { "mount", SYS_mount, { 0 }, EPERM },
    { "umount2", SYS_umount2, { 0 }, EPERM },
    { "pivot_root", SYS_pivot_root, { 0 }, EPERM },
    { "setns", SYS_setns, { -1, 0 }, EPERM },
    { "unshare", SYS_unshare, { 0 }, EPERM },
    { "process_vm_readv", SYS_process_vm_readv, { 1 }, EPERM },
    { "bpf", SYS_bpf, { 0 }, EPERM },
    { "perf_event_open", SYS_perf_event_open, { 0 }, EPERM },
    { "keyctl", SYS_keyctl, { 0 }, EPERM },
    { "kexec_load", SYS_kexec_load, { 0 }, EPERM },
    { "finit_module", SYS_finit_module, { -1 }, EPERM },
    { "io_uring_setup", SYS_io_uring_setup, { 0 }, EPERM },
    { "userfaultfd", SYS_userfaultfd, { 0 }, EPERM },
    { "mprotect", SYS_mprotect, { 0, 0, PROT_READ | PROT_EXEC }, EPERM },
    { "mmap", SYS_mmap, { 0, 0, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1 }, EPERM },
    { "socket", SYS_socket, { AF_PACKET, SOCK_RAW, 0 }, EAFNOSUPPORT },
    { "socket", SYS_socket, { AF_VSOCK, SOCK_STREAM, 0 }, EAFNOSUPPORT },
    { "socket", SYS_socket, { AF_APPLETALK, SOCK_DGRAM, 0 }, EAFNOSUPPORT },
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    { "execve", SYS_execve, { 0 }, EPERM },
    { "execveat", SYS_execveat, { -1 }, EPERM },
    { "clone", SYS_clone, { SIGCHLD }, EPERM },
    { "clone3", SYS_clone3, { 0 }, ENOSYS },
    { "ptrace", SYS_ptrace, { 16, 1 }, EPERM },
#endif
};

#define REFUSED (sizeof(refused) / sizeof(refused[0]))

static void *note_mount(void *context)
{
    *(int *)context = syscall(SYS_mount, 0, 0, 0, 0, 0) < 0 ? errno : 0;
    return NULL;
}

static void attempt_all(const struct attempt *attempts, size_t count, int *errors)
{
    for (size_t i = 0; i < count; i++) {
        const long *a = attempts[i].arguments;

        errors[i] = syscall(attempts[i].number, a[0], a[1], a[2], a[3], a[4], 0) < 0 ? errno : 0;
    }
}

static void check_all(const struct attempt *attempts, size_t count, const int *errors)
{
    for (size_t i = 0; i < count; i++) {
        if (errors[i] != attempts[i].error) {
            fail_msg("%s (%zu): errno %d instead of %d", attempts[i].name, i, errors[i],
                     attempts[i].error);
        }
    }
}

static int map_and_read(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int done = fd >= 0 && file >= 0 && memory != MAP_FAILED &&
               mprotect(memory, 4096, PROT_READ) == 0 && munmap(memory, 4096) == 0;

    fd_close(fd);
    fd_close(file);
    return done;
}

static void *work_confined(void *context)
{
    struct notes *notes = context;
    pthread_t thread;

    notes->confined = confine_thread(&notes->err);
    if (notes->confined == 0) {
        attempt_all(refused, REFUSED, notes->errors);
    }
    notes->mapped = map_and_read();
    if (pthread_create(&thread, NULL, note_mount, &notes->child_error) == 0) {
        (void)pthread_join(thread, NULL);
    }
    return NULL;
}

static void a_confined_thread(void **state)
{
    struct notes notes = { .err = ERR_INIT };
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, work_confined, &notes), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (notes.confined < 0) {
        fail_msg("confine_thread: %s", notes.err.msg);
    }
    check_all(refused, REFUSED, notes.errors);
    /* What kernd does all the time works, threads included, and those are confined too. */
    assert_true(notes.mapped);
    assert_int_equal(notes.child_error, EPERM);
}

/* ---- threads that start boxes ---- */

/* What none of their children needs, and some of what they do need. */
static const struct attempt of_starters[] = {
    { "bpf", SYS_bpf, { 0 }, EPERM },
    { "perf_event_open", SYS_perf_event_open, { 0 }, EPERM },
    { "keyctl", SYS_keyctl, { 0 }, EPERM },
    { "kexec_load", SYS_kexec_load, { 0 }, EPERM },
    { "finit_module", SYS_finit_module, { -1 }, EPERM },
    { "io_uring_enter", SYS_io_uring_enter, { -1 }, EPERM },
    { "userfaultfd", SYS_userfaultfd, { 0 }, EPERM },
    { "process_vm_readv", SYS_process_vm_readv, { 1 }, EPERM },
    { "socket", SYS_socket, { AF_VSOCK, SOCK_STREAM, 0 }, EAFNOSUPPORT },
    { "socket", SYS_socket, { AF_ALG, SOCK_SEQPACKET, 0 }, EAFNOSUPPORT },
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    { "ptrace", SYS_ptrace, { 16, 1 }, EPERM },
#endif
    { "unshare", SYS_unshare, { 0x80000001 }, EINVAL },
    { "setns", SYS_setns, { -1, 0 }, EBADF },
    { "mprotect", SYS_mprotect, { 0, 0, PROT_READ | PROT_EXEC }, 0 },
};

#define OF_STARTERS (sizeof(of_starters) / sizeof(of_starters[0]))

struct starter_notes {
    struct err err;
    int confined;
    int errors[OF_STARTERS];
    int status; /* of a program that it has started */
    int ring_error;
    int thread_error;
};

/* In a child: a program that tells by its exit code whether it has the filter, too. */
static void run_program(void)
{
    (void)execl("/bin/sh", "sh", "-c",
                "grep -q '^Seccomp:.2' /proc/self/status && "
                "grep -q '^NoNewPrivs:.1' /proc/self/status && exit 7",
                (char *)NULL);
    _exit(1);
}

static void *work_as_starter(void *context)
{
    struct starter_notes *notes = context;
    pthread_t thread;
    pid_t child;

    notes->confined = confine_starter(&notes->err);
    if (notes->confined == 0) {
        attempt_all(of_starters, OF_STARTERS, notes->errors);
    }
    child = fork();
    if (child == 0) {
        run_program();
    }
    (void)waitpid(child, &notes->status, 0);
    /* As kernd does: stricter, on top, for itself and those made later. */
    if (confine_rings(&notes->err) == 0) {
        notes->ring_error = syscall(SYS_io_uring_setup, 0, 0) < 0 ? errno : 0;
    }
    if (confine_thread(&notes->err) == 0 &&
        pthread_create(&thread, NULL, note_mount, &notes->thread_error) == 0) {
        (void)pthread_join(thread, NULL);
    }
    return NULL;
}

static void a_thread_that_starts_boxes(void **state)
{
    struct starter_notes notes = { .err = ERR_INIT };
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, work_as_starter, &notes), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (notes.confined < 0) {
        fail_msg("confine_starter: %s", notes.err.msg);
    }
    check_all(of_starters, OF_STARTERS, notes.errors);
    assert_true(WIFEXITED(notes.status));
    assert_int_equal(WEXITSTATUS(notes.status), 7);
    assert_int_equal(notes.ring_error, EPERM);
    assert_int_equal(notes.thread_error, EPERM);
}

static void a_launcher_with_rights_of_its_own(void **state)
{
    char path[] = "/tmp/kernd-launcher-XXXXXX";
    int file = mkstemp(path);

    (void)state;
    assert_true(file >= 0);
    assert_false(launcher_raises(path));
    assert_int_equal(fchmod(file, 04755), 0);
    assert_true(launcher_raises(path));
    fd_close(file);
    assert_int_equal(unlink(path), 0);
    assert_false(launcher_raises(path));
}

static void others_are_not_concerned(void **state)
{
    pid_t child;
    int status = 0;

    (void)state;
    child = fork();
    if (child == 0) {
        _exit(7);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 7);
}

/* ---- errands ---- */

struct errand_notes {
    struct pool *pool;
    pthread_t runner;
    int ran;
    struct err err;
};

static void note_thread(void *context)
{
    struct errand_notes *notes = context;

    notes->runner = pthread_self();
    notes->ran++;
}

static void an_errand_is_done_elsewhere(void **state)
{
    struct errand_notes notes = { .err = ERR_INIT };

    (void)state;
    notes.pool = pool_new("errands", 1, 0, NULL);
    assert_non_null(notes.pool);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(errand_run(notes.pool, note_thread, &notes, &notes.err), 0);
        assert_int_equal(notes.ran, i);
    }
    assert_false(pthread_equal(notes.runner, pthread_self()));
    pool_close(notes.pool);
    assert_int_equal(errand_run(notes.pool, note_thread, &notes, &notes.err), -1);
    assert_int_equal(notes.err.code, ERR_SHUTTING_DOWN);
    assert_int_equal(notes.ran, 3);
    pool_free(notes.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_confined_thread),
        cmocka_unit_test(a_thread_that_starts_boxes),
        cmocka_unit_test(a_launcher_with_rights_of_its_own),
        cmocka_unit_test(others_are_not_concerned),
        cmocka_unit_test(an_errand_is_done_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
