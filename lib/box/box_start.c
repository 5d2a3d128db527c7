/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: launch a box and wait until kernd-init inside says hello.
 * Owns: the box until it is handed out.
 * Threads: the caller's, which must outlive the box.
 * May include: base, box, engine, spawn, initlink, remedy, tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/box/box_cgroup.h"
#include "lib/box/box_fork.h"
#include "lib/box/box_internal.h"
#include "lib/box/ends.h"
#include "lib/box/init_wire.h"
#include "lib/box/remedy.h"
#include "lib/box/tree.h"

#define INIT_SOCKET "init.sock"
#define DRIVER_SOCKET "driver.sock"
/* What a launcher may say before it gives up. */
#define WORDS_MAX ((size_t)8192)
/* How long a launcher may live on when all it started is dead, and then after SIGKILL. */
#define LAUNCHER_MS 200
#define REAP_MS 5000

int box_start_dir(struct box *box, const struct box_spec *spec, struct err *err)
{
    int boxes_fd = box->boxes->boxes_fd;

    if (mkdirat(boxes_fd, box->id, 0700) == 0) {
        box->dir = openat(boxes_fd, box->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (box->dir < 0) {
        return err_set(err, ERR_IO, errno, "can't make the box's directory: %s",
                       err_errno_text(errno));
    }
    if (box->engine->kind->images && mkdirat(box->dir, ENGINE_SECRETS, 0700) < 0) {
        return err_set(err, ERR_IO, errno, "can't make the box's directory: %s",
                       err_errno_text(errno));
    }
    box->init_listener = initlink_listen(box->dir, INIT_SOCKET, err);
    if (box->init_listener < 0 ||
        (box->fork_workspaces != NULL && box_fork_prepare(box, err) < 0)) {
        return -1;
    }
    if (spec->driver) {
        box->driver_listener = initlink_listen(box->dir, DRIVER_SOCKET, err);
        return box->driver_listener < 0 ? -1 : 0;
    }
    return 0;
}

static int launch(struct box *box, const struct box_spec *spec, const struct ends *ends,
                  struct err *err)
{
    struct boxes *boxes = box->boxes;
    const struct engine *kind = box->engine->kind;
    int fds[ENDS_LAUNCHER_MAX];
    CLEANUP_FREE char *box_dir = alloc_printf("%s/%s", boxes->boxes_dir, box->id);
    CLEANUP_STRV struct strv argv = { 0 };
    CLEANUP_STRV struct strv environment = { 0 };
    const struct engine_plan plan = {
        .spec = spec,
        .box_name = box->id,
        .box_dir = box_dir,
        .library_dir = boxes->library_dir,
        .etc_dir = boxes->etc_dir,
        .resolv_conf = boxes->resolv_conf,
        .root = boxes->root,
        .root_count = BOXES_ROOTS,
        .image = boxes->image,
        .private_dir = boxes->engine_dir,
        .cache_dir = boxes->cache_dir,
        .boxes_dir = boxes->boxes_dir,
        .report_fd = ends->report >= 0 ? ENDS_REPORT : 0,
    };
    struct spawn_request request = {
        .path = box->engine->launcher,
        .fds = fds,
        .fd_count = ends_of_launcher(box, ends, fds),
        .cgroup_fd = -1,
        .ends_with_parent = kind->ends_with_parent,
    };

    kind->argv(&plan, &argv);
    if (kind->environment != NULL) {
        kind->environment(&plan, environ, &environment);
    }
    request.argv = strv_argv(&argv);
    request.environment = strv_argv(&environment);
    if (box->fork_workspaces == NULL && diskwatch_open(&box->diskwatch, spec->workspace) < 0) {
        return err_set(err, ERR_IO, errno, "can't open the workspace: %s", err_errno_text(errno));
    }
    box_cgroup_make(box);
    return box_cgroup_spawn(box, &request, err);
}

/* The launcher is dead and no hello came: say why. Returns -1. */
static int explain_death(struct box *box, struct buf *words, struct err *err)
{
    char exit_text[32] = "";
    struct remedy_host host;
    int exec_errno = spawn_exec_errno(&box->launcher);
    int status = 0;

    if (exec_errno != 0) {
        return err_set(err, ERR_ENGINE_UNAVAILABLE, exec_errno, "can't run the launcher: %s",
                       err_errno_text(exec_errno));
    }
    ends_hear_words(box, words);
    if (spawn_reap(&box->launcher, &status)) {
        (void)snprintf(exit_text, sizeof(exit_text), "%s %d", WIFEXITED(status) ? "exit" : "signal",
                       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    }
    remedy_host_read(&host);
    return box->engine->kind->explain(words->size == 0 ? "" : words->data, exit_text, &host, err);
}

static int take_link(struct box *box, const struct ends *ends, struct err *err)
{
    if (initlink_accept(&box->link, box->init_listener, err) < 0) {
        return -1;
    }
    return box->engine->kind->images ? initlink_send_streams(&box->link, ends->program, err) : 0;
}

static int wait_limits(const struct box_spec *spec, struct err *err)
{
    if (cancel_get(spec->cancel) != CANCEL_NONE) {
        return err_set(err, ERR_CANCELLED, 0, "cancelled while the box started");
    }
    if (clock_passed(spec->deadline)) {
        return err_set(err, ERR_DEADLINE, 0, "the box did not start in time");
    }
    return 0;
}

/* One wait for anything to happen before hello. 0 go on, -1 over. */
static int wait_for_hello(struct box *box, struct buf *words, const struct box_spec *spec,
                          const struct ends *ends, struct err *err)
{
    struct pollfd watched[] = {
        { .fd = box->link.fd >= 0 ? box->link.fd : box->init_listener, .events = POLLIN },
        { .fd = box->words_fd >= 0 ? -1 : box->stderr_fd, .events = POLLIN },
        { .fd = box->launcher.pidfd, .events = POLLIN },
        { .fd = cancel_poll_fd(spec->cancel), .events = POLLIN },
    };

    if (poll(watched, 4, clock_poll_ms(spec->deadline, -1)) < 0 && errno != EINTR) {
        return err_set(err, ERR_IO, errno, "can't wait for the box: %s", err_errno_text(errno));
    }
    if (watched[1].revents != 0) {
        ends_hear_words(box, words);
    }
    if (watched[0].revents != 0) {
        if (box->link.fd < 0 && take_link(box, ends, err) < 0) {
            return -1;
        }
        initlink_hear(&box->link);
        if (box->link.report.hello) {
            return 0;
        }
    }
    if (box->template != NULL) {
        /* It has no launcher: when nobody has its standard error any more, it is dead. */
        return (watched[1].revents & POLLHUP) != 0 || box->link.report.lost
                   ? box_fork_explain(words, err)
                   : wait_limits(spec, err);
    }
    if (watched[2].revents != 0 || box->link.report.lost) {
        return explain_death(box, words, err);
    }
    return wait_limits(spec, err);
}

int box_start_await(struct box *box, const struct box_spec *spec, const struct ends *ends,
                    struct err *err)
{
    CLEANUP_BUF struct buf words = BUF_INIT(WORDS_MAX);

    while (!box->link.report.hello) {
        if (wait_for_hello(box, &words, spec, ends, err) < 0) {
            return -1;
        }
    }
    if (box->fork_workspaces == NULL) {
        atomic_store(&box->boxes->landlocked, box->link.report.landlock_abi > 0);
    }
    /* Nobody else may connect, and the program shall not see it. */
    fd_clear(&box->init_listener);
    (void)unlinkat(box->dir, INIT_SOCKET, 0);
    return 0;
}

/* Kills what the launcher started, so that it still reaps it (see box_end.c, step 2). */
static void kill_children(const struct box *box)
{
    struct proctree tree = { .pids = alloc_zero(PROCTREE_MAX, sizeof(pid_t)) };

    proctree_list(box->launcher.pid, &tree);
    for (size_t i = 0; i < tree.count; i++) {
        (void)kill(tree.pids[i], SIGKILL);
    }
    free(tree.pids);
}

/* A start that failed leaves nothing behind. */
void box_start_abandon(struct box *box)
{
    if (box->launcher.pid > 0) {
        kill_children(box);
        if (!spawn_await(&box->launcher, clock_deadline_after_ms(LAUNCHER_MS))) {
            spawn_kill(&box->launcher);
            (void)spawn_await(&box->launcher, clock_deadline_after_ms(REAP_MS));
        }
    }
    box_release(box);
}

static void add_pin(struct box *box, const struct box_pin *pin, bool writable, const char *target)
{
    strv_addf(&box->pins, INIT_WIRE_PIN "%s", writable ? INIT_WIRE_WRITABLE : INIT_WIRE_READABLE,
              pin->inode == 0 ? 0 : pin->device, pin->inode, target);
}

static void add_pins(struct box *box, const struct box_spec *spec)
{
    add_pin(box, &spec->workspace_pin, !spec->workspace_readonly, "/workspace");
    for (size_t i = 0; i < spec->mount_count; i++) {
        add_pin(box, &spec->mounts[i].pin, spec->mounts[i].writable, spec->mounts[i].target);
    }
}

struct box *box_start_new(struct boxes *boxes, const struct box_spec *spec)
{
    struct box *box = alloc_zero(1, sizeof(*box));

    box->boxes = boxes;
    box->limits = spec->limits;
    if (spec->fork_workspaces != NULL) {
        box->fork_workspaces = spec->fork_workspaces;
        box->fork_workspace = spec->workspace;
        box->fork_layers = spec->fork_layers;
        box->fork_readonly = spec->workspace_readonly;
    }
    box->dir = -1;
    box->launcher = (struct spawn_child){ .pidfd = -1, .exec_error = -1 };
    box->init_listener = -1;
    box->link = INITLINK_INIT;
    box->driver_listener = -1;
    box->driver = -1;
    box->cgroup = -1;
    box->stdin_fd = -1;
    box->stdout_fd = -1;
    box->stderr_fd = -1;
    box->words_fd = -1;
    box->report_fd = -1;
    box->held[OUTPUT_STDOUT].max = BOX_HELD_MAX;
    box->held[OUTPUT_STDERR].max = BOX_HELD_MAX;
    (void)id_make("box", box->id);
    add_pins(box, spec);
    watchdog_init(&box->watchdog);
    diskwatch_init(&box->diskwatch);
    (void)atomic_fetch_add(&boxes->running, 1);
    return box;
}

int box_start(struct boxes *boxes, const struct box_spec *spec, struct box **ret_box,
              struct err *err)
{
    struct boxes_engine *engine = boxes_engines_pick(boxes, spec->engine, err);
    struct ends ends = ENDS_INIT;
    struct box *box = NULL;
    int failed = 0;

    if (engine == NULL || boxes_engines_check(engine, err) < 0 ||
        (engine->kind->vet != NULL && engine->kind->vet(spec, err) < 0)) {
        return -1;
    }
    if (spec->fork_workspaces != NULL && !boxes_can_fork(boxes)) {
        return err_set(err, ERR_NOT_SUPPORTED_HERE, 0, "this engine makes no templates");
    }
    if (engine->kind->seccomp && boxes_prepare(boxes, err) < 0) {
        return -1;
    }
    box = box_start_new(boxes, spec);
    box->engine = engine;
    failed = box_start_dir(box, spec, err) < 0 || ends_make(box, &ends, err) < 0 ||
             launch(box, spec, &ends, err) < 0;
    if (failed == 0 && !engine->kind->images) {
        ends_close(&ends); /* the end of a launcher that dies shall be seen */
    }
    failed = failed != 0 || box_start_await(box, spec, &ends, err) < 0;
    ends_close(&ends);
    if (failed != 0) {
        if (box_cgroup_oom(box)) {
            (void)err_set(err, ERR_BOX_START_FAILED, 0, "the box can't start in so little memory");
        }
        box_start_abandon(box);
        return -1;
    }
    *ret_box = box;
    return 0;
}
