/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: clone3 with shared memory, for which libc has no function.
 * Owns: the child's stack, in the caller's frame, where the caller has none for it.
 * Threads: any.
 * May include: nothing.
 */
#include "lib/box/clone.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)

/*
 * leaves: who calls is gone where it would come back, without a look at its memory, which is the
 * child's then; what it needs for that is in registers.
 */
static long start(struct clone_args *arguments, void (*run)(void *context), void *context,
                  bool leaves)
{
    long result = SYS_clone3;

    arguments->flags |= CLONE_VM;
    /* The child begins behind the call with all registers but its stack pointer as they were: no
     * compiler knows of that, so it must not come back to what a compiler made (clone(2)). */
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "js 2f\n\t"
                     "jnz 1f\n\t"
                     "mov %[context], %%rdi\n\t"
                     "call *%[run]\n\t"
                     "ud2\n"
                     "1:\n\t"
                     "test %[leaves], %[leaves]\n\t"
                     "jz 2f\n\t"
                     "mov %[exit], %%eax\n\t"
                     "xor %%edi, %%edi\n\t"
                     "syscall\n\t"
                     "ud2\n"
                     "2:"
                     : "+a"(result)
                     : "D"(arguments),
                       "S"(sizeof(*arguments)), [run] "r"(run), [context] "r"(context),
                       [leaves] "r"((uint64_t)leaves), [exit] "i"(SYS_exit_group)
                     : "rcx", "r11", "memory", "cc");
    if (result < 0) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

#else

static long start(struct clone_args *arguments, void (*run)(void *context), void *context,
                  bool leaves)
{
    long pid = -1;

    arguments->stack = 0; /* the child is where the caller is, in a copy */
    arguments->stack_size = 0;
    if (leaves) {
        errno = ENOSYS;
        return -1;
    }
    pid = syscall(SYS_clone3, arguments, sizeof(*arguments));
    if (pid == 0) {
        run(context);
    }
    return pid;
}

#endif

static long start_masked(struct clone_args *arguments, void (*run)(void *context), void *context,
                         bool leaves)
{
    uint64_t all = UINT64_MAX;
    uint64_t before = 0;
    long pid;
    int reason;

    /* A handler that ran in the child would run in our memory. */
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(before));
    pid = start(arguments, run, context, leaves);
    reason = errno;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
    errno = reason;
    return pid;
}

/* Enough for system calls. */
#define STACK_SIZE 16384
/* gcc would clear it (-ftrivial-auto-var-init): all of it through the cache for each process. */
#if __has_attribute(uninitialized)
#define UNINITIALIZED __attribute__((uninitialized))
#else
#define UNINITIALIZED
#endif

/* Not part of its caller: the compiler touches each page of what a function may need
 * (-fstack-clash-protection), and who brings a stack needs none of it. */
static long start_in_frame(struct clone_args *arguments, void (*run)(void *context), void *context)
    __attribute__((noinline));
static long start_in_frame(struct clone_args *arguments, void (*run)(void *context), void *context)
{
    UNINITIALIZED _Alignas(16) char stack[STACK_SIZE];

    arguments->stack = (uint64_t)(uintptr_t)stack;
    arguments->stack_size = sizeof(stack);
    return start_masked(arguments, run, context, false);
}

long clone_start(struct clone_args *arguments, void (*run)(void *context), void *context)
{
    arguments->flags |= CLONE_VFORK;
    return arguments->stack != 0 ? start_masked(arguments, run, context, false)
                                 : start_in_frame(arguments, run, context);
}

long clone_leave(struct clone_args *arguments, void (*run)(void *context), void *context)
{
    return start_masked(arguments, run, context, true);
}
