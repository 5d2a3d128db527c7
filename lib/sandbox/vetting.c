/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vetting: the judgement of requests.
 * Owns: nothing.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/vetting.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/box/box.h"
#include "lib/sandbox/environments_use.h"
#include "lib/sandbox/mounts.h"
#include "lib/sandbox/place.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/work/hostdir.h"

/* Where the kernel's own limits are to be had; err's remedy. */
static int tell_how(const struct boxes_abilities *abilities, struct err *err)
{
    return err_remedy(
        err,
        "%s%srun kernd as a systemd user service (systemctl --user start kernd.socket; loginctl "
        "enable-linger where nobody logs in), in Docker with --cgroupns=private and a writable "
        "/sys/fs/cgroup, or leave \"requireLimits\" out",
        abilities->cgroup_missing, abilities->cgroup_missing[0] == '\0' ? "" : ": ");
}

int vetting_require_limits(struct sandbox *sandbox, const struct limits *limits, struct err *err)
{
    struct boxes_abilities abilities;

    boxes_abilities(sandbox->boxes, &abilities);
    /* The watchdog looks now and then: between two looks a box can be above its cap. */
    if (limits->memory_mb > 0 && !text_equal(abilities.memory, "cgroup")) {
        (void)err_field(err, ERR_LIMITS_NOT_ENFORCED, "/memoryMb",
                        "the kernel does not put the memory cap in force here (%s)",
                        abilities.memory);
        return tell_how(&abilities, err);
    }
    if (limits->pids > 0 && text_equal(abilities.pids, "none")) {
        (void)err_field(err, ERR_LIMITS_NOT_ENFORCED, "/pids",
                        "the kernel does not put the cap of processes in force here");
        return tell_how(&abilities, err);
    }
    if (limits->cpus > 0 && !text_equal(abilities.cpu, "cgroup")) {
        (void)err_field(err, ERR_LIMITS_NOT_ENFORCED, "/cpus",
                        "the kernel does not put the cap of processor time in force here");
        return tell_how(&abilities, err);
    }
    return 0;
}

int vetting_box(const struct box *box, const struct run_request *request, struct err *err)
{
    struct box_enforced enforced;

    if (!request->require_limits) {
        return 0;
    }
    box_enforced(box, &enforced);
    if (request->limits.memory_mb > 0 && !text_equal(enforced.memory, "cgroup")) {
        return err_field(err, ERR_LIMITS_NOT_ENFORCED, "/memoryMb",
                         "the box got no cgroup, so its memory cap is not in force (%s)",
                         enforced.memory);
    }
    if (request->limits.cpus > 0 && !text_equal(enforced.cpu, "cgroup")) {
        return err_field(err, ERR_LIMITS_NOT_ENFORCED, "/cpus",
                         "the box got no cgroup, so its cap of processor time is not in force");
    }
    return 0;
}

static int resolve_workspace(struct sandbox *sandbox, struct run_request *request, struct err *err)
{
    CLEANUP_FD int directory = -1;
    char *resolved;

    if (request->workspace == NULL) {
        return 0;
    }
    if (hostdir_workspace(request->workspace, &sandbox->host_rules, &resolved, &directory, err) <
        0) {
        if (err != NULL) {
            (void)snprintf(err->pointer, sizeof(err->pointer), "/workspace");
        }
        return -1;
    }
    free(request->workspace);
    request->workspace = resolved;
    return 0;
}

int vetting_request(struct sandbox *sandbox, struct run_request *request, struct err *err)
{
    if (limits_check(&request->limits, &sandbox->maxima, err) < 0 ||
        (request->require_limits && vetting_require_limits(sandbox, &request->limits, err) < 0) ||
        place_check(request, err) < 0) {
        return -1;
    }
    /* That of a session was judged when it was made, and stays as long as the session. */
    if (request->session == NULL && environments_use_begin(sandbox, request, err) < 0) {
        return -1;
    }
    /* Also what a session was made with: a link may lead elsewhere by now. */
    if (mounts_resolve(&sandbox->host_rules, request->mounts, request->mount_count, err) < 0) {
        return -1;
    }
    return resolve_workspace(sandbox, request, err);
}
