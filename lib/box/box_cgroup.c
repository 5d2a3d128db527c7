/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: a box's own cgroup from before its launcher until nothing is left in it.
 * Owns: the box's descriptor of it.
 * Threads: the box's; box_cgroup_read from any.
 * May include: base, box, cgroup, spawn.
 */
#include "lib/box/box_cgroup.h"

#include <errno.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"

/* Everything in it is dead when it is removed, or about to be. */
#define REMOVE_MS 2000

static const struct cgroup_tree *tree_of(const struct box *box)
{
    return &box->boxes->cgroups;
}

/* What is in it beside the caller's: kernd-init, and the launcher of a box that was not forked. */
static uint32_t own_tasks(const struct box *box)
{
    return box->template == NULL ? 2 : 1;
}

static struct cgroup_limits limits_of(const struct box *box)
{
    return (struct cgroup_limits){ .memory_bytes = box->limits.memory_bytes,
                                   .pids = box->limits.pids,
                                   .own_tasks = own_tasks(box),
                                   .cpus = box->limits.cpus };
}

void box_cgroup_make(struct box *box)
{
    const struct cgroup_limits limits = limits_of(box);
    struct err err = ERR_INIT;

    if (tree_of(box)->fd >= 0 &&
        cgroup_make(tree_of(box), box->id, &limits, &box->cgroup, &err) < 0) {
        log_line(LOG_WARNING, "box_without_cgroup", "box", box->id, "why", err.msg, NULL);
    }
}

/* Told once: it costs every call some milliseconds. */
static void tell_moved(const struct box *box, int reason)
{
    if (!atomic_exchange(&box->boxes->moves_told, true)) {
        log_line(LOG_WARNING, "boxes_are_moved_into_their_cgroups", "why", err_errno_text(reason),
                 NULL);
    }
}

int box_cgroup_spawn(struct box *box, struct spawn_request *request, struct err *err)
{
    int reason;

    request->cgroup_fd = box->cgroup;
    if (spawn_start(request, &box->launcher, err) == 0) {
        return 0;
    }
    if (box->cgroup < 0) {
        return -1;
    }
    reason = errno;
    request->cgroup_fd = -1;
    if (spawn_start(request, &box->launcher, err) < 0) {
        return -1;
    }
    tell_moved(box, reason);
    if (cgroup_enter(box->cgroup, box->launcher.pid) < 0) {
        log_line(LOG_WARNING, "box_without_cgroup", "box", box->id, "why", err_errno_text(errno),
                 NULL);
        (void)box_cgroup_remove(box);
    }
    return 0;
}

int box_cgroup_limit(struct box *box, struct err *err)
{
    const struct cgroup_limits limits = limits_of(box);

    return box->cgroup < 0 ? 0 : cgroup_limit(tree_of(box), box->cgroup, &limits, err);
}

void box_cgroup_begin(struct box *box)
{
    struct cgroup_usage usage;

    if (box->cgroup >= 0) {
        cgroup_read(tree_of(box), box->cgroup, &usage);
        box->cpu_user_before_us = usage.cpu_user_us;
        box->cpu_system_before_us = usage.cpu_system_us;
    }
}

bool box_cgroup_has_memory(const struct box *box)
{
    return box->cgroup >= 0 && tree_of(box)->memory;
}

bool box_cgroup_has_pids(const struct box *box)
{
    return box->cgroup >= 0 && tree_of(box)->pids;
}

bool box_cgroup_has_cpu(const struct box *box)
{
    return box->cgroup >= 0 && tree_of(box)->cpu;
}

static int64_t since(int64_t now, int64_t before)
{
    return now < 0 || before < 0 ? now : now - before;
}

static int64_t more_than(int64_t all, int64_t some)
{
    return all > some ? all - some : 0;
}

void box_cgroup_read(const struct box *box, struct cgroup_usage *ret_usage)
{
    if (box->cgroup < 0) {
        *ret_usage = (struct cgroup_usage){ .cpu_user_us = -1,
                                            .cpu_system_us = -1,
                                            .memory_bytes = -1,
                                            .peak_memory_bytes = -1,
                                            .peak_pids = -1,
                                            .oom_kills = -1 };
        return;
    }
    cgroup_read(tree_of(box), box->cgroup, ret_usage);
    if (ret_usage->peak_pids >= 0) {
        ret_usage->peak_pids = more_than(ret_usage->peak_pids, own_tasks(box));
    }
    ret_usage->cpu_user_us = since(ret_usage->cpu_user_us, box->cpu_user_before_us);
    ret_usage->cpu_system_us = since(ret_usage->cpu_system_us, box->cpu_system_before_us);
}

bool box_cgroup_oom(const struct box *box)
{
    return box_cgroup_has_memory(box) && cgroup_oom_kills(tree_of(box), box->cgroup) > 0;
}

bool box_cgroup_freeze(struct box *box, bool frozen)
{
    if (box->cgroup < 0 || cgroup_freeze(box->cgroup, frozen) < 0) {
        return false;
    }
    box->frozen = frozen;
    return true;
}

void box_cgroup_kill(const struct box *box)
{
    if (box->cgroup >= 0) {
        (void)cgroup_kill(box->cgroup);
    }
}

bool box_cgroup_remove(struct box *box)
{
    int fd = box->cgroup;

    box->cgroup = -1;
    return fd < 0 || cgroup_remove(tree_of(box), box->id, fd, clock_deadline_after_ms(REMOVE_MS));
}
