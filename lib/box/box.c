/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: hand the program to a box, take the driver's connection, send signals.
 * Owns: nothing beyond the box.
 * Threads: the box's; box_signal, box_freeze and box_memory from any.
 * May include: base, box, initlink.
 */
#include "lib/box/box.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "lib/box/box_cgroup.h"
#include "lib/box/box_internal.h"
#include "lib/box/guest_etc.h"
#include "lib/box/output.h"
#include "lib/box/peer.h"
#include "lib/box/proctree.h"
#include "lib/box/tree.h"

#define WORKSPACE "/workspace"

/* What is mostly left in it is one file, whose name is known: then nobody need look. */
static void remove_dir(struct box *box)
{
    const int boxes_fd = box->boxes->boxes_fd;

    if (box->code_name != NULL) {
        (void)unlinkat(box->dir, box->code_name, 0);
    }
    fd_clear(&box->dir);
    if (unlinkat(boxes_fd, box->id, AT_REMOVEDIR) < 0) {
        (void)tree_remove(boxes_fd, box->id);
    }
}

void box_release(struct box *box)
{
    fd_close(box->stdin_fd);
    fd_close(box->stdout_fd);
    fd_close(box->stderr_fd);
    fd_close(box->words_fd);
    fd_close(box->report_fd);
    fd_close(box->init_listener);
    fd_close(box->driver_listener);
    fd_close(box->driver);
    initlink_done(&box->link);
    spawn_done(&box->launcher);
    watchdog_done(&box->watchdog);
    diskwatch_done(&box->diskwatch);
    (void)box_cgroup_remove(box);
    if (box->dir >= 0) {
        remove_dir(box);
    }
    (void)atomic_fetch_sub(&box->boxes->running, 1);
    if (box->template != NULL) {
        (void)atomic_fetch_sub(&box->template->forks, 1);
    }
    free(box->scratch);
    strv_done(&box->pins);
    buf_done(&box->held[OUTPUT_STDOUT]);
    buf_done(&box->held[OUTPUT_STDERR]);
    free(box);
}

static const char *const base_environment[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=" GUEST_ETC_HOME,
    "USER=" GUEST_ETC_USER,
    "LOGNAME=" GUEST_ETC_USER,
    "SHELL=/bin/bash",
    "LANG=C.UTF-8",
    "TZ=UTC",
};

/* An image has its own idea of the rest. */
static const char *const image_environment[] = {
    "HOME=" GUEST_ETC_HOME,
    "USER=" GUEST_ETC_USER,
    "LOGNAME=" GUEST_ETC_USER,
};

/* Does env set the variable that `assignment` ("K=V") sets? */
static bool overridden(const struct strv *env, const char *assignment)
{
    size_t key_size = strcspn(assignment, "=") + 1;

    for (size_t i = 0; env != NULL && i < env->count; i++) {
        if (strncmp(env->items[i], assignment, key_size) == 0) {
            return true;
        }
    }
    return false;
}

static void make_environment(const struct box *box, const struct strv *env,
                             struct strv *ret_environment)
{
    bool image = box->engine->kind->images;
    const char *const *base = image ? image_environment : base_environment;
    size_t count = image ? sizeof(image_environment) / sizeof(image_environment[0])
                         : sizeof(base_environment) / sizeof(base_environment[0]);

    for (size_t i = 0; i < count; i++) {
        if (!overridden(env, base[i])) {
            strv_add(ret_environment, base[i]);
        }
    }
    if (env != NULL) {
        strv_copy(ret_environment, env);
    }
}

/* The file appears in the box under /run/kernd, which is this directory, read-only there. */
int box_put_code(struct box *box, const char *name, const char *code, size_t size, struct err *err)
{
    CLEANUP_FD int fd =
        openat(box->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);

    if (fd < 0 || fd_write_full(fd, code, size) < 0) {
        return err_set(err, ERR_IO, errno, "can't write the code for the box: %s",
                       err_errno_text(errno));
    }
    box->code_name = name;
    return 0;
}

/* Beside the code: seen by this box alone, in memory (the runtime directory is a tmpfs), gone with
 * it. */
int box_put_secret(struct box *box, const char *name, const void *data, size_t size,
                   struct err *err)
{
    CLEANUP_FD int dir = -1;
    CLEANUP_FD int fd = -1;

    if (mkdirat(box->dir, ENGINE_SECRETS, 0700) < 0 && errno != EEXIST) {
        return err_set(err, ERR_IO, errno, "can't keep a secret: %s", err_errno_text(errno));
    }
    dir = openat(box->dir, ENGINE_SECRETS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0) {
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
    }
    if (fd < 0 || fd_write_full(fd, data, size) < 0) {
        return err_set(err, ERR_IO, errno, "can't keep a secret: %s", err_errno_text(errno));
    }
    return 0;
}

int box_begin(struct box *box, const struct box_program *program, struct err *err)
{
    CLEANUP_STRV struct strv environment = { 0 };
    struct initlink_program start = {
        .cwd = program->cwd == NULL ? WORKSPACE : program->cwd,
        .argv = program->argv,
        .environment = &environment,
        .tasks = box->boxes->tasks_limited && box->limits.pids > 0
                     ? box->limits.pids + box->engine->kind->tasks
                     : 0,
        .driver_fd = (uint32_t)program->driver_fd,
        .file_bytes = box->limits.disk_bytes,
        .pins = box->fork_workspaces == NULL ? &box->pins : NULL, /* they are its boxes' */
    };

    if (box->begun || program->argv->count == 0) {
        return err_set(err, ERR_INTERNAL, 0, "a box runs exactly one program");
    }
    if (program->code != NULL &&
        box_put_code(box, program->code_name, program->code, program->code_size, err) < 0) {
        return -1;
    }
    make_environment(box, program->env, &environment);
    if (initlink_send_start(&box->link, &start, err) < 0) {
        return -1;
    }
    box->begun = true;
    box->begun_ns = clock_mono_ns();
    box_cgroup_begin(box);
    diskwatch_start(&box->diskwatch, box->limits.disk_bytes, box->boxes->files_max);
    if (!box_cgroup_has_memory(box)) {
        watchdog_start(&box->watchdog, box->link.pid, box->limits.memory_bytes);
    }
    return 0;
}

/* Takes a connection from the driver's socket if it comes from this box. 1 taken, 0 not. */
static bool take_driver(struct box *box)
{
    CLEANUP_FD int fd = accept4(box->driver_listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0 || !peer_in_box(fd, box->link.pid)) {
        return false;
    }
    box->driver = CLEANUP_TAKE_FD(fd);
    fd_clear(&box->driver_listener);
    (void)unlinkat(box->dir, "driver.sock", 0);
    return true;
}

/* Where interpreters name what they ended of; the lines above it tell where in kernd's own code. */
static size_t find_last_line(const char *text, size_t size)
{
    while (size > 0 && text[size - 1] != '\n') {
        size--;
    }
    return size;
}

/* It may have ended of what it told on standard error, which is kept for whoever reads on. */
static int explain_no_driver(struct box *box, struct err *err)
{
    const struct buf *words = &box->held[OUTPUT_STDERR];
    size_t size;
    size_t begin;

    output_hold(box, OUTPUT_STDERR);
    size = words->size;
    while (size > 0 && words->data[size - 1] == '\n') {
        size--;
    }
    begin = find_last_line(words->data, size);
    return err_set(err, ERR_BOX_START_FAILED, 0, "the driver ended before it connected%s%.*s",
                   size > 0 ? ": " : "", (int)(size - begin), size > 0 ? words->data + begin : "");
}

int box_driver(struct box *box, int64_t deadline, struct cancel *cancel, struct err *err)
{
    while (box->driver < 0) {
        struct pollfd watched[] = {
            { .fd = box->driver_listener, .events = POLLIN },
            { .fd = box->link.fd, .events = POLLIN },
            { .fd = cancel_poll_fd(cancel), .events = POLLIN },
            { .fd = output_may_hold(box, OUTPUT_STDOUT) ? box->stdout_fd : -1, .events = POLLIN },
            { .fd = output_may_hold(box, OUTPUT_STDERR) ? box->stderr_fd : -1, .events = POLLIN },
        };

        if (box->driver_listener < 0) {
            return err_set(err, ERR_INTERNAL, 0, "this box has no driver");
        }
        (void)poll(watched, sizeof(watched) / sizeof(watched[0]), clock_poll_ms(deadline, -1));
        if (watched[3].revents != 0) {
            output_hold(box, OUTPUT_STDOUT);
        }
        if (watched[4].revents != 0) {
            output_hold(box, OUTPUT_STDERR);
        }
        if (watched[0].revents != 0 && take_driver(box)) {
            break;
        }
        initlink_hear(&box->link);
        if (box->link.report.has_exited || box->link.report.lost) {
            return explain_no_driver(box, err);
        }
        if (cancel_get(cancel) != CANCEL_NONE) {
            return err_set(err, ERR_CANCELLED, 0, "cancelled while the driver started");
        }
        if (clock_passed(deadline)) {
            return err_set(err, ERR_DEADLINE, 0, "the driver did not connect in time");
        }
    }
    return box->driver;
}

int box_signal(struct box *box, int signal_number, bool all, struct err *err)
{
    return initlink_send_signal(&box->link, signal_number, all, err);
}

bool box_lives(struct box *box)
{
    initlink_hear(&box->link);
    return !box->link.report.has_exited && !box->link.report.lost;
}

static bool memory_over(struct box *box)
{
    watchdog_catch_up(&box->watchdog);
    return watchdog_look(&box->watchdog);
}

void box_expect_short(struct box *box)
{
    watchdog_put_off(&box->watchdog);
}

enum box_stop box_look(struct box *box)
{
    enum box_stop stop = BOX_STOP_PEER_DONE;

    initlink_hear(&box->link);
    if (box->link.report.has_exited) {
        stop = BOX_STOP_EXITED;
    } else if (box->link.report.lost) {
        stop = box_cgroup_oom(box) ? BOX_STOP_OOM : BOX_STOP_LOST;
    } else if (memory_over(box)) {
        stop = BOX_STOP_OOM;
    } else if (diskwatch_look(&box->diskwatch)) {
        stop = BOX_STOP_DISK;
    }
    box->stop = stop;
    box->pumped = true;
    return stop;
}

int64_t box_memory(const struct box *box)
{
    struct proctree tree = { .pids = NULL };
    struct cgroup_usage usage;
    uint64_t bytes;

    box_cgroup_read(box, &usage);
    if (usage.memory_bytes >= 0) {
        return usage.memory_bytes;
    }
    if (!proctree_supported()) {
        return -1;
    }
    tree.pids = alloc_zero(PROCTREE_MAX, sizeof(*tree.pids));
    proctree_list(box->link.pid, &tree);
    bytes = proctree_resident(&tree);
    free(tree.pids);
    return (int64_t)bytes;
}

int box_freeze(struct box *box, bool frozen, struct err *err)
{
    if (box_cgroup_freeze(box, frozen)) {
        return 0;
    }
    return box_signal(box, frozen ? SIGSTOP : SIGCONT, true, err);
}

static const char *how_memory(const struct box *box)
{
    if (box_cgroup_has_memory(box)) {
        return "cgroup";
    }
    return watchdog_supported() ? "watchdog" : "none";
}

static const char *how_pids(const struct box *box)
{
    if (box_cgroup_has_pids(box)) {
        return "cgroup";
    }
    return box->boxes->tasks_limited ? "rlimit" : "none";
}

void box_enforced(const struct box *box, struct box_enforced *ret_enforced)
{
    ret_enforced->memory = box->limits.memory_bytes > 0 ? how_memory(box) : "none";
    ret_enforced->pids = box->limits.pids > 0 ? how_pids(box) : "none";
    ret_enforced->cpu = box->limits.cpus > 0 && box_cgroup_has_cpu(box) ? "cgroup" : "none";
    ret_enforced->disk = box->limits.disk_bytes > 0 ? "measured" : "none";
}

const char *box_id(const struct box *box)
{
    return box->id;
}

pid_t box_init_pid(const struct box *box)
{
    return box->link.pid;
}
