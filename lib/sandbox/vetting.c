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
#include "lib/sandbox/mounts.h"
#include "lib/sandbox/place.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/work/hostdir.h"

int vetting_require_limits(struct sandbox *sandbox, const struct limits *limits, struct err *err)
{
    struct boxes_abilities abilities;

    boxes_abilities(sandbox->boxes, &abilities);
    /* The watchdog looks now and then: between two looks a box can be above its cap. */
    if (limits->memory_mb > 0 && !text_equal(abilities.memory, "cgroup")) {
        return err_field(err, ERR_LIMITS_NOT_ENFORCED, "/memoryMb",
                         "the kernel does not put the memory cap in force here (%s)",
                         abilities.memory);
    }
    if (limits->pids > 0 && text_equal(abilities.pids, "none")) {
        return err_field(err, ERR_LIMITS_NOT_ENFORCED, "/pids",
                         "the kernel does not put the cap of processes in force here");
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
    /* Also what a session was made with: a link may lead elsewhere by now. */
    if (mounts_resolve(&sandbox->host_rules, request->mounts, request->mount_count, err) < 0) {
        return -1;
    }
    return resolve_workspace(sandbox, request, err);
}
