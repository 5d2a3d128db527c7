/* SPDX-License-Identifier: Apache-2.0 */
/*
 * move: renames against the modes of directories.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/work/move.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"

/* With the owner's rights for the time of the move. */
static int move_locked(int from, int to, const char *name, mode_t mode)
{
    CLEANUP_FD int fd = fd_open_beneath(from, name, O_PATH | O_DIRECTORY, 0);
    char link[64];
    int result;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (fd < 0 || chmod(link, mode | S_IRWXU) < 0) {
        return -1;
    }
    result = renameat(from, name, to, name);
    (void)chmod(link, mode & 07777);
    return result;
}

int move_entry(int from, int to, const char *name)
{
    int result = renameat(from, name, to, name);
    struct stat status;

    if (result < 0 && errno == EACCES && fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(status.st_mode)) {
        result = move_locked(from, to, name, status.st_mode);
    }
    return result;
}
