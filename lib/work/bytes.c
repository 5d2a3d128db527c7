/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes: copies without a way through this process's memory.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/work/bytes.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 30)

/* Between file systems, where copy_file_range refuses (EXDEV, since Linux 5.19). */
static int send_bytes(int from, int to)
{
    ssize_t sent;

    do {
        sent = sendfile(to, from, NULL, PIECE);
    } while (sent > 0 || (sent < 0 && errno == EINTR));
    return sent < 0 ? -1 : 0;
}

int bytes_copy(int from, int to)
{
    ssize_t copied;

    if (ioctl(to, FICLONE, from) == 0) {
        return 0;
    }
    do {
        copied = copy_file_range(from, NULL, to, NULL, PIECE, 0);
    } while (copied > 0 || (copied < 0 && errno == EINTR));
    if (copied < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP)) {
        return send_bytes(from, to);
    }
    return copied < 0 ? -1 : 0;
}
