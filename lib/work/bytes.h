/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes: the content of a file into another. Any thread.
 */
#ifndef KERND_WORK_BYTES_H
#define KERND_WORK_BYTES_H

/*
 * The rest of an open regular file into another, empty one: shared where the file system can
 * (FICLONE, ioctl_ficlone(2)), else copied by the kernel, also between file systems. 0 or -1 with
 * errno.
 */
int bytes_copy(int from, int to);

#endif
