/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine: takes from threads of kernd what they don't need.
 *
 * A seccomp filter is inherited by children, execve included (seccomp(2)), and launchers need what
 * kernd itself never does: new namespaces, mounts, pivot_root; the programs in boxes need memory
 * that they can execute. So there are two filters. That of the threads that start boxes refuses
 * only what nothing beneath them needs. All other threads, those that read what clients send among
 * them, can neither start a program or process nor make memory executable. What is refused fails
 * with EPERM and the thread lives on; where filters differ, a box's own counts: the kernel takes
 * the strictest verdict, and of two errors that of the filter added last. Threads share their
 * memory: this is no wall around code that already runs in kernd, it takes the easy next steps from
 * it.
 */
#ifndef KERND_BOX_CONFINE_H
#define KERND_BOX_CONFINE_H

#include "lib/base/err.h"

/*
 * Confines the calling thread and all that it makes from now on, for good; it gets no_new_privs,
 * too. 0, or -1 NOT_SUPPORTED_HERE (a kernel without seccomp), INTERNAL.
 *
 * Landlock is no part of it: a confined thread could not look into /proc of a box any more
 * (ptrace(2), "access mode checking"), which box_memory has to.
 */
int confine_thread(struct err *err);

/*
 * The same for a thread that starts boxes, and for all that is started from it. no_new_privs takes
 * the setuid bit from launchers: not to be called where one has it (launcher_raises).
 */
int confine_starter(struct err *err);

/* On top of it, for threads that start no templates: no rings of io_uring. 0 or -1 as before. */
int confine_rings(struct err *err);

#endif
