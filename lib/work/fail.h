/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail: what an errno of a file operation in a workspace means to the client. Any thread.
 */
#ifndef KERND_WORK_FAIL_H
#define KERND_WORK_FAIL_H

#include "lib/base/err.h"

/*
 * Sets err by the errno value sys and a few words for what could not be done ("the file cannot be
 * written"). Always returns -1.
 *   ENOENT -> FILE_NOT_FOUND          EEXIST, ENOTEMPTY -> FILE_EXISTS
 *   ELOOP (a symlink), EXDEV, ENOTDIR, EISDIR, ENXIO, ENAMETOOLONG, EINVAL, EBUSY -> BAD_PATH
 *   EACCES, EPERM, EROFS -> FORBIDDEN     ENOSPC, EDQUOT, EFBIG -> WORKSPACE_FULL
 *   EAGAIN (of open(2) with O_NONBLOCK, where a program holds a lease) -> SESSION_BUSY    else IO
 */
int fail_errno(struct err *err, int sys, const char *what);
/* Tells the compiler so; see err_failed. NOLINTNEXTLINE(readability-identifier-naming) */
#define fail_errno(...) ((void)fail_errno(__VA_ARGS__), err_failed())

#endif
