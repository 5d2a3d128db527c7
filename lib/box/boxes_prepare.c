/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make what all boxes share when the first one is about to start, not when the server does: a
 * client that started the server by its request waits for all that happens before the answer.
 * Owns: the runtime directory's etc/; the filter programs are the factory's.
 * Threads: any that may start boxes; one works, the others wait for it.
 * May include: base, boxes, guest_etc, seccomp.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/box/boxes_internal.h"
#include "lib/box/guest_etc.h"

static int build_etc(const struct boxes *boxes, struct err *err)
{
    CLEANUP_FD int runtime = openat(boxes->boxes_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (runtime < 0) {
        return err_set(err, ERR_IO, errno, "can't open the runtime directory: %s",
                       err_errno_text(errno));
    }
    return guest_etc_build(runtime, "etc", err);
}

int boxes_prepare(struct boxes *boxes, struct err *err)
{
    int result = 0;

    (void)pthread_mutex_lock(&boxes->preparing);
    if (!boxes->prepared) {
        result = build_etc(boxes, err) < 0 ? -1 : seccomp_build(&boxes->seccomp, err);
        boxes->prepared = result == 0;
    }
    (void)pthread_mutex_unlock(&boxes->preparing);
    return result;
}
