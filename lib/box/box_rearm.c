/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: gives a box whose program is up and waits for its work (a spare) the limits of its one call.
 * Owns: nothing beyond the box.
 * Threads: the box's.
 * May include: base, box.
 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/box/box_cgroup.h"
#include "lib/box/box_internal.h"

/* The program as the host sees it: whoever made the driver's connection (unix(7), SO_PEERCRED). */
static pid_t program_pid(const struct box *box)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    return getsockopt(box->driver, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ? -1 : peer.pid;
}

static int lower(pid_t pid, enum __rlimit_resource resource, rlim_t value)
{
    const struct rlimit limit = { .rlim_cur = value, .rlim_max = value };

    return prlimit(pid, resource, &limit, NULL);
}

/* Those of the kernel's limits that differ from what the program was started with. */
static int lower_all(const struct box *box, const struct box_limits *limits)
{
    const bool tasks =
        box->boxes->tasks_limited && limits->pids > 0 && limits->pids != box->limits.pids;
    const bool files = limits->disk_bytes > 0 && limits->disk_bytes != box->limits.disk_bytes;
    pid_t pid;

    if (!tasks && !files) {
        return 0;
    }
    pid = program_pid(box);
    if (pid <= 0) {
        return -1;
    }
    /* kernd-init is one of the counted, as in init_child.c. */
    return (tasks &&
            lower(pid, RLIMIT_NPROC, (rlim_t)limits->pids + box->engine->kind->tasks + 1) < 0) ||
                   (files && lower(pid, RLIMIT_FSIZE, limits->disk_bytes) < 0)
               ? -1
               : 0;
}

int box_rearm(struct box *box, const struct box_limits *limits, struct err *err)
{
    if (!box->begun) {
        box->limits = *limits;
        return box_cgroup_limit(box, err);
    }
    if (lower_all(box, limits) < 0) {
        return err_set(err, ERR_IO, errno, "the spare's limits can't be set: %s",
                       err_errno_text(errno));
    }
    box->limits = *limits;
    if (box_cgroup_limit(box, err) < 0) {
        return -1;
    }
    box_cgroup_begin(box);
    diskwatch_start(&box->diskwatch, limits->disk_bytes, box->boxes->files_max);
    box->told_started = false;
    box->begun_ns = clock_mono_ns();
    box->link.report.started.at_ns = box->begun_ns;
    watchdog_done(&box->watchdog);
    watchdog_init(&box->watchdog);
    if (!box_cgroup_has_memory(box)) {
        watchdog_start(&box->watchdog, box->link.pid, limits->memory_bytes);
    }
    return 0;
}
