/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy: the whole of one workspace into another, empty one. Any thread; blocks as long as it takes.
 *
 * Regular files, directories and symbolic links (as links) with their permission bits and times;
 * FIFOs, sockets and devices are left out. Hard links become files of their own. Bytes are shared
 * with the original where the file system can (FICLONE, ioctl_ficlone(2)), else copied by the
 * kernel. Set-user-id and set-group-id bits are dropped. What changes meanwhile may be seen or not.
 */
#ifndef KERND_WORK_COPY_H
#define KERND_WORK_COPY_H

#include "lib/base/err.h"

/*
 * The rest of an open regular file into another, empty one: shared where the file system can, else
 * copied by the kernel. 0 or -1 with errno.
 */
int copy_bytes(int from, int to);

/* 0, or -1 WORKSPACE_FULL, IO. What was copied until then stays. */
int copy_tree(int from, int to, struct err *err);

#endif
