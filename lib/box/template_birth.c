/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make the two processes of a box: PID 1 and, of the template's memory, its program.
 * Owns: nothing.
 * Threads: one.
 * May include: base, init, clone, template.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/fd.h"
#include "lib/box/clone.h"
#include "lib/box/init.h"
#include "lib/box/template.h"

/* Beside the network namespace (template_network.c). */
#define NEW_NAMESPACES (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)
#define KERND_INIT "/run/kernd-lib/kernd-init"
#define STACK_SIZE ((size_t)64 * 1024)

/* What the kernel is told of a thread by libc, which a process in another's memory begins without.
 */
struct thread {
    int *number; /* where libc keeps the thread's, and the kernel clears it */
    void *robust;
    size_t robust_size;
};

/* What PID 1 of a new box has to do. */
struct birth {
    const struct template *template;
    const struct template_order *order;
    sigjmp_buf back; /* the program's way into the interpreter */
    int ruleset;
    struct thread thread;
    /* In a standby, who else is in the program's memory; the kernel clears them (await_leave). */
    int standby;
    int first;
};

/* PID 1 is here while it is in the memory of the template or of its standby. Enough for what a
 * library does at a fork (pthread_atfork(3)); pages that nobody uses are not there. */
static _Alignas(16) char first_stack[STACK_SIZE];
/* A program begins here in a standby's memory, and goes on where the standby was. */
static _Alignas(16) char program_stack[STACK_SIZE];

void template_birth_tell(int fd, const char *what, int reason)
{
    char line[256];
    int size = snprintf(line, sizeof(line), "kernd-template: %s: %s\n", what,
                        reason == 0 ? "refused" : err_errno_text(reason));
    ssize_t ignored = write(fd, line, (size_t)size);

    (void)ignored;
}

static void give_up(const char *what) __attribute__((noreturn));
static void give_up(const char *what)
{
    template_birth_tell(STDERR_FILENO, what, errno);
    _exit(1);
}

/* 0, 1 and 2 of the box in place of the template's; no other descriptor is left. */
static bool take_streams(const struct template_order *order)
{
    for (int i = 0; i < 3; i++) {
        if (dup2(order->fds[i], i) < 0) {
            return false;
        }
    }
    return close_range(STDERR_FILENO + 1, UINT_MAX, 0) == 0;
}

/* All walls, in a process that has run nothing of anybody. */
static void build_box(const struct template *template, const struct template_order *order)
{
    const struct sigaction usual = { .sa_handler = SIG_DFL };
    const char *failed;

    (void)sigaction(SIGCHLD, &usual, NULL);
    if (!take_streams(order)) {
        give_up("take its descriptors");
    }
    failed = template_mounts_build(template, &order->fork);
    failed = failed != NULL ? failed : template_walls_leave();
    failed = failed != NULL ? failed : template_walls_filter(&template->walls);
    if (failed != NULL) {
        give_up(failed);
    }
}

/*
 * PID 1 is kernd-init, as in every box. It says hello when it can be neither read nor traced, and
 * not before that does kernd hand any code to the program. (What is left of the template in this
 * process would belong to the box's user in /proc: its memory is of the template's user namespace,
 * whose root that user is.)
 */
static void become_init(pid_t program, bool outside, uint32_t landlock_abi)
    __attribute__((noreturn));
static void become_init(pid_t program, bool outside, uint32_t landlock_abi)
{
    char name[] = KERND_INIT;
    char how[32];
    char number[16];
    char abi[16];
    char *const argv[] = { name, how, number, abi, NULL };
    char *const environment[] = { NULL };

    (void)snprintf(how, sizeof(how), "%s", outside ? INIT_WIRE_OUTSIDE : INIT_WIRE_FORKED);
    (void)snprintf(number, sizeof(number), "%d", program);
    (void)snprintf(abi, sizeof(abi), "%" PRIu32, landlock_abi);
    (void)execve(KERND_INIT, argv, environment);
    give_up("become kernd-init");
}

/* ---- the program ---- */

/*
 * Until a process is out of this memory for good: the kernel clears the word that
 * set_tid_address(2) named, and wakes who waits for it, when the process has executed another
 * program or is at its end, and in neither case does it come back (mm_release() in kernel/fork.c).
 */
static void await_leave(int *word)
{
    int value;

    while ((value = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != 0) {
        (void)syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
    }
}

static void run_program(struct birth *birth) __attribute__((noreturn));
static void run_program(struct birth *birth)
{
    const struct template_wire_fork *order = &birth->order->fork;
    const char *failed = template_program_confine(birth->template, order, birth->ruleset);

    if (failed == NULL && birth->template->is_standby) {
        await_leave(&birth->first);
        await_leave(&birth->standby);
        (void)syscall(SYS_set_robust_list, birth->thread.robust, birth->thread.robust_size);
    }
    failed = failed != NULL ? failed : template_program_become(birth->template, order);
    if (failed != NULL) {
        give_up(failed);
    }
    siglongjmp(birth->back, 1);
}

static int begin_program(void *birth)
{
    run_program(birth);
}

/*
 * The program of a standby has its memory, as a child of vfork(2) would, but for good: the standby
 * is gone by then, or about to. That of a template is a copy. Its number, or -1.
 */
static pid_t make_program(struct birth *birth)
{
    if (birth->template->is_standby) {
        return clone(begin_program, program_stack + sizeof(program_stack),
                     CLONE_VM | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, birth, NULL,
                     NULL, birth->thread.number);
    }
    return fork();
}

/*
 * PID 1 of the box, in the memory of the template, which waits, or of its standby, which ends
 * (clone.h): a copy of the template's memory is made once, for the program. Nothing is left behind
 * there but what libc does at a fork, and undoes.
 */
static void run_first(void *context) __attribute__((noreturn));
static void run_first(void *context)
{
    struct birth *birth = context;
    uint32_t landlock_abi;
    pid_t program;

    if (birth->template->is_standby) {
        (void)syscall(SYS_set_tid_address, &birth->first);
        template_standby_hand_box(birth->template);
    }
    build_box(birth->template, birth->order);
    landlock_abi = init_landlock_prepare(false, &birth->ruleset);
    program = make_program(birth);
    if (program < 0) {
        give_up("fork the program");
    }
    if (program == 0) {
        run_program(birth);
    }
    become_init(program, birth->order->outside, landlock_abi);
}

/* ---- the template, or its standby ---- */

static bool read_thread(struct thread *ret_thread)
{
    *ret_thread = (struct thread){ 0 };
    return prctl(PR_GET_TID_ADDRESS, &ret_thread->number, 0, 0, 0) == 0 &&
           ret_thread->number != NULL &&
           __atomic_load_n(ret_thread->number, __ATOMIC_RELAXED) == gettid() &&
           syscall(SYS_get_robust_list, 0, &ret_thread->robust, &ret_thread->robust_size) == 0;
}

bool template_birth_can_give(void)
{
    struct thread thread;

    return CLONE_CAN_LEAVE && read_thread(&thread);
}

static long clone_into(struct birth *birth, int *ret_box, int cgroup)
{
    struct clone_args arguments = {
        .flags = NEW_NAMESPACES,
        .exit_signal = SIGCHLD,
        .stack = (uint64_t)(uintptr_t)first_stack,
        .stack_size = sizeof(first_stack),
    };

    if (cgroup >= 0) {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = (unsigned)cgroup;
    }
    if (birth->template->is_standby) {
        return clone_leave(&arguments, run_first, birth);
    }
    arguments.flags |= CLONE_PIDFD;
    arguments.pidfd = (uint64_t)(uintptr_t)ret_box;
    return clone_start(&arguments, run_first, birth);
}

/* Where a process can't be born in a cgroup, kernd moves it before it has any code. */
static long clone_box(struct template_order *order, struct birth *birth)
{
    const int cgroup = order->fork.has_cgroup != 0 ? order->fds[3] : -1;
    long pid = clone_into(birth, &order->box, cgroup);
    int reason = errno;

    if (pid < 0 && cgroup >= 0) {
        order->outside = true;
        pid = clone_into(birth, &order->box, -1);
        reason = errno;
    }
    /* The box took itself out of reach, and with it the memory that it had (prctl(2)). */
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    errno = reason;
    return pid;
}

/* False: the kernel would not tell when this process is out of the memory that it gives. */
static bool prepare_leave(struct birth *birth)
{
    birth->standby = gettid();
    birth->first = 1; /* whatever is not 0 */
    if (!read_thread(&birth->thread)) {
        return false;
    }
    return syscall(SYS_set_tid_address, &birth->standby) == birth->standby;
}

bool template_birth(const struct template *template, struct template_order *order)
{
    struct birth birth = { .template = template, .order = order };

    order->box = -1;
    if (template->is_standby && !prepare_leave(&birth)) {
        template_birth_tell(order->fds[2], "leave its memory", errno);
        return false;
    }
    if (sigsetjmp(birth.back, 1) != 0) {
        explicit_bzero(order, sizeof(*order)); /* its names are the host's affair */
        template_program_resume();
        return true;
    }
    if (clone_box(order, &birth) < 0) {
        template_birth_tell(order->fds[2], "clone", errno);
    }
    return false;
}
