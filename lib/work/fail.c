/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail: errno of file operations to err codes, in one table.
 * Owns: nothing.
 * Threads: any; pure.
 * May include: base.
 */
#include "lib/work/fail.h"

#include <errno.h>
#include <stddef.h>

struct meaning {
    int sys;
    enum err_code code;
    const char *why;
};

/* ELOOP and EXDEV are openat2's answers to a symlink and to a way out (openat2(2)). */
static const struct meaning meanings[] = {
    { ENOENT, ERR_FILE_NOT_FOUND, "there is nothing by that name" },
    { EEXIST, ERR_FILE_EXISTS, "something by that name is there already" },
    { ENOTEMPTY, ERR_FILE_EXISTS, "a directory by that name is not empty" },
    { ELOOP, ERR_BAD_PATH, "the path goes through a symbolic link" },
    { EXDEV, ERR_BAD_PATH, "the path leaves the workspace" },
    { ENOTDIR, ERR_BAD_PATH, "a part of the path is not a directory" },
    { EISDIR, ERR_BAD_PATH, "the path names a directory" },
    { ENXIO, ERR_BAD_PATH, "the path names something that is not a regular file" },
    { ENAMETOOLONG, ERR_BAD_PATH, "the path is too long for this file system" },
    { EINVAL, ERR_BAD_PATH, "the file system refuses this name or this move" },
    { EILSEQ, ERR_BAD_PATH, "the file system refuses this name" },
    { EAGAIN, ERR_SESSION_BUSY, "a program that runs holds a lease on it" }, /* fcntl(2) */
    { EBUSY, ERR_BAD_PATH, "it is in use as a mount point" },
    { EACCES, ERR_FORBIDDEN, "its permissions do not allow it" },
    { EPERM, ERR_FORBIDDEN, "its permissions do not allow it" },
    { EROFS, ERR_FORBIDDEN, "it is on a read-only file system" },
    { ENOSPC, ERR_WORKSPACE_FULL, "no space is left" },
    { EDQUOT, ERR_WORKSPACE_FULL, "the disk quota is used up" },
    { EFBIG, ERR_WORKSPACE_FULL, "it would be larger than the file system allows" },
};

/* In parentheses, the name is not the macro of the same name. */
int(fail_errno)(struct err *err, int sys, const char *what)
{
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        if (meanings[i].sys == sys) {
            (void)err_set(err, meanings[i].code, sys, "%s: %s", what, meanings[i].why);
            if (meanings[i].code == ERR_FORBIDDEN) {
                return err_remedy(err, "change its mode from inside the box with chmod");
            }
            return -1;
        }
    }
    return err_set(err, ERR_IO, sys, "%s: %s", what, err_errno_text(sys));
}
