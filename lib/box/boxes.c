/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: open and close what all boxes share; sweep what a killed predecessor left.
 * Owns: what is in the runtime directory, the filter programs.
 * Threads: open and close from one, the rest from any.
 * May include: base, confine, engine, seccomp, launcher, tree.
 */
#include "lib/box/boxes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/box/boxes_internal.h"
#include "lib/box/confine.h"
#include "lib/box/errand.h"
#include "lib/box/launcher.h"
#include "lib/box/tree.h"
#include "lib/box/watchdog.h"

#define STARTERS 2
#define LANDLOCK_VERSION_FLAG 1U /* LANDLOCK_CREATE_RULESET_VERSION, landlock_create_ruleset(2) */

/* A private directory below the runtime directory; its descriptor, or -1 IO. */
static int private_dir(int runtime, const char *name, struct err *err)
{
    int fd = -1;

    if (mkdirat(runtime, name, 0700) == 0 || errno == EEXIST) {
        fd = openat(runtime, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd < 0 || fchmod(fd, 0700) < 0) {
        fd_close(fd);
        return err_set(err, ERR_IO, errno, "can't make %s in the runtime directory: %s", name,
                       err_errno_text(errno));
    }
    return fd;
}

/* One daemon a runtime directory: a second one would sweep the first one's boxes. */
static int lock_boxes(const struct boxes *boxes, const char *runtime, struct err *err)
{
    if (flock(boxes->boxes_fd, LOCK_EX | LOCK_NB) < 0) {
        (void)err_set(err, ERR_CONFLICT, errno, "another kernd uses the runtime directory %s",
                      runtime);
        return err_remedy(err, "stop it, or give this one another runtime directory");
    }
    return 0;
}

static int make_directories(const struct boxes_config *config, struct boxes *boxes, struct err *err)
{
    CLEANUP_FREE char *runtime = realpath(config->runtime_dir, NULL);
    CLEANUP_FD int runtime_fd =
        runtime == NULL ? -1 : open(runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_FD int probe = -1;
    CLEANUP_FD int engine = -1;

    if (runtime_fd < 0) {
        return err_set(err, ERR_IO, errno, "can't open the runtime directory %s: %s",
                       config->runtime_dir, err_errno_text(errno));
    }
    boxes->boxes_dir = alloc_printf("%s/boxes", runtime);
    boxes->etc_dir = alloc_printf("%s/etc", runtime);
    boxes->probe_dir = alloc_printf("%s/probe", runtime);
    boxes->engine_dir = alloc_printf("%s/engine", runtime);
    boxes->boxes_fd = private_dir(runtime_fd, "boxes", err);
    if (boxes->boxes_fd < 0 || lock_boxes(boxes, runtime, err) < 0) {
        return -1;
    }
    boxes_sweep(boxes->boxes_fd, boxes->boxes_dir);
    /* What an engine knew of a predecessor's boxes, which are gone. */
    (void)tree_remove(runtime_fd, "engine");
    probe = private_dir(runtime_fd, "probe", err);
    engine = probe < 0 ? -1 : private_dir(runtime_fd, "engine", err);
    return engine < 0 ? -1 : 0;
}

static int find_library(const struct boxes_config *config, struct boxes *boxes, struct err *err)
{
    CLEANUP_FREE char *init = NULL;

    boxes->library_dir = realpath(config->library_dir, NULL);
    if (boxes->library_dir != NULL) {
        init = alloc_printf("%s/kernd-init", boxes->library_dir);
    }
    if (init == NULL || access(init, X_OK) < 0) {
        return err_set(err, ERR_IO, errno, "there is no program kernd-init in %s: %s",
                       config->library_dir, err_errno_text(errno));
    }
    return 0;
}

/* What leads into /usr on merged systems, or is a directory of its own on others. */
static void look_at_root(struct boxes *boxes)
{
    static const char *const paths[BOXES_ROOTS] = { "/bin",   "/sbin",  "/lib",
                                                    "/lib64", "/lib32", "/libx32" };

    for (size_t i = 0; i < BOXES_ROOTS; i++) {
        char link[PATH_MAX];
        ssize_t size = readlink(paths[i], link, sizeof(link) - 1);

        boxes->root[i].path = paths[i];
        boxes->root[i].present = size > 0 || access(paths[i], F_OK) == 0;
        if (size > 0) {
            boxes->root[i].link = alloc_printf("%.*s", (int)size, link);
        }
    }
}

/* RLIMIT_NPROC counts per user and user namespace since Linux 5.14; before, all of the user's. */
static bool tasks_counted_per_namespace(void)
{
    struct utsname name;
    char *dot = NULL;
    uint64_t major = 0;
    uint64_t minor = 0;

    if (uname(&name) < 0 || (dot = strchr(name.release, '.')) == NULL) {
        return false;
    }
    *dot = '\0';
    dot[1 + strspn(dot + 1, "0123456789")] = '\0';
    return text_parse_u64(name.release, &major) == 0 && text_parse_u64(dot + 1, &minor) == 0 &&
           (major > 5 || (major == 5 && minor >= 14));
}

/* A second wall: without it boxes start as well, and the log says so. */
static void confine(struct boxes *boxes)
{
    struct err reason = ERR_INIT;

    for (size_t i = 0; i < BOXES_ENGINES_MAX; i++) {
        const char *launcher = boxes->engines[i].launcher;

        if (launcher != NULL && launcher_raises(launcher)) {
            log_line(LOG_INFO, "starters_not_confined", "why", "the launcher is setuid", "launcher",
                     launcher, NULL);
            return;
        }
    }
    boxes->confined = confine_starter(&reason) == 0;
    if (!boxes->confined) {
        log_line(LOG_WARNING, "starters_not_confined", "why", reason.msg, NULL);
    }
}

void boxes_confine_rest(const struct boxes *boxes)
{
    struct err reason = ERR_INIT;

    if (boxes->confined && confine_rings(&reason) < 0) {
        log_line(LOG_WARNING, "starters_not_confined", "why", reason.msg, NULL);
    }
}

/* What the configuration leads to, before there is any thread. */
static int read_config(const struct boxes_config *config, struct boxes *boxes, struct err *err)
{
    if (boxes_engines_find(config, boxes, err) < 0 || find_library(config, boxes, err) < 0 ||
        make_directories(config, boxes, err) < 0) {
        return -1;
    }
    if (config->confine) {
        confine(boxes);
    }
    return 0;
}

int boxes_open(const struct boxes_config *config, struct boxes **ret_boxes, struct err *err)
{
    struct boxes *boxes = alloc_zero(1, sizeof(*boxes));

    boxes->boxes_fd = -1;
    boxes->files_max = config->files_max > 0 ? config->files_max : BOXES_FILES_MAX;
    boxes->cgroups.fd = -1;
    boxes->seccomp = (struct seccomp){ .programs = { -1, -1 } };
    (void)pthread_mutex_init(&boxes->lock, NULL);
    (void)pthread_mutex_init(&boxes->preparing, NULL);
    if (read_config(config, boxes, err) < 0 ||
        (boxes->starters = pool_new("starter", STARTERS, 0, err)) == NULL) {
        boxes_close(boxes);
        return -1;
    }
    cgroup_open(&boxes->cgroups);
    look_at_root(boxes);
    boxes->resolv_conf = realpath("/etc/resolv.conf", NULL);
    /* Root is exempt from the limit, in any namespace (kernel/fork.c, INIT_USER). */
    boxes->tasks_limited = tasks_counted_per_namespace() && geteuid() != 0;
    *ret_boxes = boxes;
    return 0;
}

void boxes_close(struct boxes *boxes)
{
    if (boxes == NULL) {
        return;
    }
    for (size_t i = 0; i < BOXES_ROOTS; i++) {
        free(boxes->root[i].link);
    }
    pool_free(boxes->starters);
    seccomp_done(&boxes->seccomp);
    cgroup_close(&boxes->cgroups);
    fd_close(boxes->boxes_fd);
    (void)pthread_mutex_destroy(&boxes->preparing);
    (void)pthread_mutex_destroy(&boxes->lock);
    boxes_engines_done(boxes);
    free(boxes->boxes_dir);
    free(boxes->engine_dir);
    free(boxes->library_dir);
    free(boxes->etc_dir);
    free(boxes->probe_dir);
    free(boxes->resolv_conf);
    free(boxes);
}

int boxes_errand(struct boxes *boxes, void (*run)(void *context), void *context, struct err *err)
{
    return errand_run(boxes->starters, run, context, err);
}

void boxes_abilities(struct boxes *boxes, struct boxes_abilities *ret_abilities)
{
    long landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_FLAG);

    *ret_abilities = (struct boxes_abilities){
        .engine = boxes->standard->kind->name,
        .memory = boxes->cgroups.memory  ? "cgroup"
                  : watchdog_supported() ? "watchdog"
                                         : "none",
        .pids = boxes->cgroups.pids    ? "cgroup"
                : boxes->tasks_limited ? "rlimit"
                                       : "none",
        .cpu = boxes->cgroups.cpu ? "cgroup" : "none",
        .disk = "measured",
        .cgroup_missing = boxes->cgroups.why,
        .seccomp = true,
        .landlock_abi = landlock < 0 ? 0 : (int)landlock,
        .landlock = atomic_load(&boxes->landlocked),
        .files_max = boxes->files_max,
        .io_weight = boxes->cgroups.io ? CGROUP_IO_WEIGHT : 0,
    };
    (void)pthread_mutex_lock(&boxes->lock);
    (void)snprintf(ret_abilities->engine_version, sizeof(ret_abilities->engine_version), "%s",
                   boxes_engines_version(boxes, boxes->standard));
    (void)pthread_mutex_unlock(&boxes->lock);
}

size_t boxes_running(struct boxes *boxes)
{
    return atomic_load(&boxes->running);
}

bool boxes_can_fork(const struct boxes *boxes)
{
    /* Where there is an image, no interpreter and library of kernd's own choice is in it. */
    return boxes->standard->launcher != NULL && !boxes->standard->kind->images;
}
