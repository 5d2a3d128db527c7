/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boxing: what a request means for its box.
 * Owns: nothing.
 * Threads: run threads (see box.h).
 * May include: all of lib.
 */
#include "lib/sandbox/boxing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/box/box.h"
#include "lib/sandbox/environments.h"
#include "lib/sandbox/guest_env.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session.h"
#include "lib/sandbox/setup.h"
#include "lib/sandbox/vetting.h"

/* A launcher that takes longer than this is broken; a program's own deadline starts after it. */
#define LAUNCH_S 15
#define EXTRA_MOUNTS 2 /* what is installed, an environment */
#define MIB (UINT64_C(1) << 20)

/* A link there is the box's own play. */
static bool has_deps(const struct boxing *boxing, struct stat *ret_status)
{
    return boxing->root >= 0 && !boxing->bare &&
           fstatat(boxing->root, SESSION_DEPS, ret_status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(ret_status->st_mode);
}

/*
 * The launcher follows links in the source, so the mount is pinned: another box of the session may
 * put a link to some place of the host there at any time.
 */
static void lock_deps(const struct boxing *boxing, const char *deps, struct box_mount *mounts,
                      size_t *count)
{
    const struct run_request *request = boxing->request;
    struct stat status;

    if (request->kind != RUN_SETUP && request->deps_readonly && has_deps(boxing, &status)) {
        mounts[(*count)++] =
            (struct box_mount){ .source = deps,
                                .target = SETUP_DEPS,
                                .pin = { .device = status.st_dev, .inode = status.st_ino } };
    }
}

/* kernd's own directory: no box can write there once it is built. */
static void add_layer(const char *path, struct box_mount *mounts, size_t *count)
{
    if (path != NULL) {
        mounts[(*count)++] = (struct box_mount){ .source = path, .target = SETUP_LAYER };
    }
}

struct box_mount *boxing_mounts(const struct run_mount *mounts, size_t count)
{
    struct box_mount *made = alloc_zero(count + EXTRA_MOUNTS, sizeof(*made));

    for (size_t i = 0; i < count; i++) {
        made[i] =
            (struct box_mount){ .source = mounts[i].source,
                                .target = mounts[i].target,
                                .writable = mounts[i].writable,
                                .pin = { .device = mounts[i].device, .inode = mounts[i].inode } };
    }
    return made;
}

/* Host paths of what a box may have of packages. */
struct packages {
    char *deps;  /* of its session */
    char *layer; /* of its environment, NULL: none */
};

static struct packages packages_of(const struct boxing *boxing)
{
    const char *environment = boxing->request->environment;

    return (struct packages){
        .deps = alloc_printf("%s/%s", boxing->workspace, SESSION_DEPS),
        .layer = environment == NULL
                     ? NULL
                     : environments_path(boxing->sandbox->environments, environment),
    };
}

static void packages_done(struct packages *packages)
{
    free(packages->deps);
    free(packages->layer);
}

struct box_limits boxing_limits(const struct run_request *request)
{
    const struct limits *limits = &request->limits;

    return (struct box_limits){
        .memory_bytes = limits->memory_mb * MIB,
        .pids = (uint32_t)limits->pids,
        .cpus = limits->cpus,
        /* What it can't write to does not grow, however large it is. */
        .disk_bytes = request->workspace_readonly ? 0 : limits->disk_mb * MIB,
    };
}

/* But for its mounts. */
static struct box_spec spec_of(const struct boxing *boxing)
{
    struct box_spec spec = {
        .workspace = boxing->workspace,
        .workspace_readonly = boxing->request->workspace_readonly,
        .engine = boxing->request->choice.engine,
        .limits = boxing_limits(boxing->request),
        .network = boxing->request->network,
        .driver = boxing->driver,
        .deadline = clock_deadline_after_s(LAUNCH_S),
        .cancel = boxing->cancel,
    };
    struct stat status;

    if (boxing->root >= 0 && fstat(boxing->root, &status) == 0) {
        spec.workspace_pin = (struct box_pin){ .device = status.st_dev, .inode = status.st_ino };
    }
    return spec;
}

/* Takes a box that has just started, or ends it. */
static int vet(struct box *box, const struct run_request *request, struct box **ret_box,
               struct err *err)
{
    struct box_outcome outcome;

    if (vetting_box(box, request, err) < 0) {
        box_end(box, NULL, &outcome);
        return -1;
    }
    *ret_box = box;
    return 0;
}

int boxing_start(const struct boxing *boxing, struct box **ret_box, struct err *err)
{
    const struct run_request *request = boxing->request;
    struct box *box = NULL;
    CLEANUP_FREE struct box_mount *mounts = boxing_mounts(request->mounts, request->mount_count);
    struct packages packages = packages_of(boxing);
    struct box_spec spec = spec_of(boxing);
    int failed;

    spec.mounts = mounts;
    spec.mount_count = request->mount_count;
    choice_extras(&request->choice, &spec.extras);
    lock_deps(boxing, packages.deps, mounts, &spec.mount_count);
    add_layer(packages.layer, mounts, &spec.mount_count);
    failed = box_start(boxing->sandbox->boxes, &spec, &box, err);
    packages_done(&packages);
    if (failed == 0) {
        return vet(box, request, ret_box, err);
    }
    /* The call's own time has not begun: a launcher that hangs is a box that can't start. */
    if (err != NULL && err->code == ERR_DEADLINE) {
        err->code = ERR_BOX_START_FAILED;
    }
    return -1;
}

int boxing_fork(const struct boxing *boxing, struct box *template, const struct boxing_fork *how,
                struct box **ret_box, struct err *err)
{
    struct packages packages = packages_of(boxing);
    struct box_spec spec = spec_of(boxing);
    struct box_mount mounts[EXTRA_MOUNTS];
    struct box *box;
    int failed;

    spec.deadline = how->deadline;
    spec.prepares = how->prepares;
    spec.ahead = boxing->ahead;
    spec.mounts = mounts;
    lock_deps(boxing, packages.deps, mounts, &spec.mount_count);
    add_layer(packages.layer, mounts, &spec.mount_count);
    failed = box_fork(template, &spec, &box, err);
    packages_done(&packages);
    return failed < 0 ? -1 : vet(box, boxing->request, ret_box, err);
}

bool boxing_has_deps(const struct boxing *boxing)
{
    struct stat status;

    return has_deps(boxing, &status);
}

void boxing_env(const struct boxing *boxing, struct strv *env)
{
    guest_env_make(boxing->request, boxing_has_deps(boxing), env);
}

int boxing_secrets(const struct boxing *boxing, struct box *box, struct err *err)
{
    const struct run_request *request = boxing->request;

    for (size_t i = 0; i < request->secret_count; i++) {
        const struct run_file *secret = &request->secrets[i];

        if (box_put_secret(box, secret->path, secret->data, secret->size, err) < 0) {
            return -1;
        }
    }
    return 0;
}
