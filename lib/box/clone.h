/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clone: a child that lives in our memory until it executes a program.
 *
 * What vfork(2) does, by clone3(2), for its descriptor of the process and its cgroup. A copy of the
 * memory, as fork(2) makes, costs a threaded server more than the launcher that replaces it: the
 * page tables are copied, then each page that any thread writes to, and all processors are told.
 */
#ifndef KERND_BOX_CLONE_H
#define KERND_BOX_CLONE_H

#include <linux/sched.h>
#include <stdbool.h>

/*
 * What such a child executes must leave the memory as it found it: in a server with threads it
 * makes system calls only, on variables of its own, and sanitizers stay out of it. In a process
 * with one thread, which waits, it may call what leaves no trace; it may also fork(2), and a copy
 * of the memory may leave run() by siglongjmp(3) to where the parent has been.
 */
#if defined(__has_attribute) && __has_attribute(disable_sanitizer_instrumentation)
#define CLONE_CHILD                                               \
    __attribute__((no_sanitize("address", "thread", "undefined"), \
                   disable_sanitizer_instrumentation))
#else
#define CLONE_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

/*
 * Starts a child that calls run(context), with all signals blocked; run does not return. Comes back
 * when the child has executed a program or is gone (CLONE_VFORK). errno is the child's afterwards,
 * unless it failed. On other architectures than x86-64 the memory is copied.
 *
 * The kernel never takes such a child for the culprit when memory is short (in_vfork() in
 * include/linux/sched/mm.h), which would be kernd's end as well.
 *
 * arguments: its flags get CLONE_VM and CLONE_VFORK; a stack of the caller's, or 0: then it is set
 * to one that is enough for system calls. Its process id, or -1 (errno).
 */
long clone_start(struct clone_args *arguments, void (*run)(void *context), void *context);

/*
 * The same, but the caller ends as soon as the child is there: the memory is the child's from then
 * on, all but what the caller's frames hold is as it was. Comes back only when there is no child:
 * -1 (errno), as ever where CLONE_CAN_LEAVE is false. The caller has one thread, and brings a
 * stack.
 */
#if defined(__x86_64__)
#define CLONE_CAN_LEAVE true
#else
#define CLONE_CAN_LEAVE false
#endif
long clone_leave(struct clone_args *arguments, void (*run)(void *context), void *context);

#endif
