/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine: takes from threads of kernd what only those need that start boxes.
 *
 * A seccomp filter is inherited by children (seccomp(2)), and launchers need what kernd itself
 * never does: new namespaces, mounts, pivot_root. So the threads that start boxes go without one;
 * all others, those that read what clients and boxes send among them, can neither start a program
 * or process nor make memory executable, and get none of the calls that have been ways into
 * kernels. What is refused fails with EPERM and the thread lives on. Threads share their memory:
 * this is no wall around code that already runs in kernd, it takes the easy next steps from it.
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

#endif
