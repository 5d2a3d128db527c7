/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: order a box from a template (template_wire.h), in place of a launcher.
 * Owns: the box until it is handed out.
 * Threads: any, several for one template: an order is sent in one piece, and nothing is answered.
 * May include: base, box, initlink, seccomp, template_wire.
 */
#include "lib/box/box_fork.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/box/box_cgroup.h"
#include "lib/box/box_internal.h"
#include "lib/box/ends.h"
#include "lib/box/seccomp.h"
#include "lib/box/template_wire.h"

#define FILTER_MAX ((size_t)1024 * 1024)
#define PINS_MAX ((size_t)1024 * 1024)
#define WORKSPACE "/workspace"

int box_fork_explain(const struct buf *words, struct err *err)
{
    const char *text = words->size == 0 ? "it ended without a word" : words->data;

    return err_set(err, ERR_BOX_START_FAILED,
                   strstr(text, err_errno_text(ESTALE)) == NULL ? 0 : ESTALE,
                   "the template made no box: %.*s", (int)strcspn(text, "\n"), text);
}

/* What its boxes' programs may reach beside what every box has, for Landlock (init_wire.h). */
static int put_pins(struct box *template, struct err *err)
{
    CLEANUP_BUF struct buf pins = BUF_INIT(PINS_MAX);

    for (size_t i = 0; i < template->pins.count; i++) {
        const char *pin = template->pins.items[i];

        if (buf_append(&pins, pin, strlen(pin) + 1) < 0) {
            return err_set(err, ERR_IO, 0, "too many mounts");
        }
    }
    return box_put_code(template, TEMPLATE_WIRE_PINS, pins.data, pins.size, err);
}

static int put_filter(struct box *template, enum seccomp_table_program program, const char *name,
                      struct err *err)
{
    CLEANUP_BUF struct buf filter = BUF_INIT(FILTER_MAX);

    return seccomp_program(program, &filter, err) < 0
               ? -1
               : box_put_code(template, name, filter.data, filter.size, err);
}

int box_fork_prepare(struct box *template, struct err *err)
{
    return put_filter(template, SECCOMP_TABLE_TEMPLATE_LIST, TEMPLATE_WIRE_FILTER, err) < 0 ||
                   put_filter(template, SECCOMP_TABLE_FORKED_WALLS, TEMPLATE_WIRE_WALLS, err) < 0
               ? -1
               : put_pins(template, err);
}

/* The name of what lies right below a directory; NULL: it lies elsewhere. */
static const char *name_below(const char *directory, const char *path)
{
    const size_t size = directory == NULL ? 0 : strlen(directory);
    const char *name =
        size > 0 && text_starts_with(path, directory) && path[size] == '/' ? path + size + 1 : "";

    return template_wire_is_name(name) ? name : NULL;
}

/* What the template knows the workspace by; NULL: it can't reach it, or not in this way. */
static const char *workspace_of(const struct box *template, const struct box_spec *spec)
{
    if (spec->workspace_readonly != template->fork_readonly || spec->workspace_pin.inode == 0) {
        return NULL;
    }
    if (template->fork_workspace == NULL) {
        return name_below(template->fork_workspaces, spec->workspace);
    }
    return text_equal(template->fork_workspace, spec->workspace) ? TEMPLATE_WIRE_OWN : NULL;
}

static int fill_mount(const struct box *template, const struct box_spec *spec,
                      const struct box_mount *mount, struct template_wire_fork *order)
{
    const char *inside = name_below(spec->workspace, mount->source);
    const char *layer = name_below(template->fork_layers, mount->source);

    if (mount->writable) {
        return -1;
    }
    if (inside != NULL && text_equal(name_below(WORKSPACE, mount->target), inside) &&
        mount->pin.inode != 0) {
        (void)snprintf(order->locked, sizeof(order->locked), "%s", inside);
        order->locked_device = mount->pin.device;
        order->locked_inode = mount->pin.inode;
        return 0;
    }
    if (layer != NULL && text_equal(mount->target, TEMPLATE_WIRE_LAYER_AT)) {
        (void)snprintf(order->layer, sizeof(order->layer), "%s", layer);
        return 0;
    }
    return -1;
}

static int fill(const struct box *box, const struct box *template, const struct box_spec *spec,
                struct template_wire_fork *order)
{
    const char *name = workspace_of(template, spec);

    if (name == NULL || spec->network) {
        return -1;
    }
    *order = (struct template_wire_fork){
        .version = TEMPLATE_WIRE_VERSION,
        .has_cgroup = box->cgroup >= 0 ? 1 : 0,
        .tasks = box->boxes->tasks_limited ? spec->limits.pids : 0,
        .files = INITLINK_FILES_SOFT,
        .file_bytes = spec->limits.disk_bytes,
        .tmpfs_bytes = spec->limits.memory_bytes,
        .device = spec->workspace_pin.device,
        .inode = spec->workspace_pin.inode,
        .prepares = spec->prepares ? 1 : 0,
        .ahead = spec->ahead ? 1 : 0,
    };
    (void)snprintf(order->box, sizeof(order->box), "%s", box->id);
    (void)snprintf(order->workspace, sizeof(order->workspace), "%s", name);
    for (size_t i = 0; i < spec->mount_count; i++) {
        if (fill_mount(template, spec, &spec->mounts[i], order) < 0) {
            return -1;
        }
    }
    return 0;
}

/* So small that a stream socket takes it whole or not at all. */
static int send_order(const struct box *template, struct template_wire_fork *order, const int *fds)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(TEMPLATE_WIRE_FDS_MAX * sizeof(int))];
    } control = { .bytes = "" };
    const size_t size = (INIT_WIRE_STREAMS + order->has_cgroup) * sizeof(*fds);
    struct iovec data = { .iov_base = order, .iov_len = sizeof(*order) };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = CMSG_SPACE(size) };
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);

    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(part), fds, size);
    return sendmsg(template->driver, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                   (ssize_t)sizeof(*order)
               ? 0
               : -1;
}

static int place_order(struct box *box, const struct box_spec *spec, const struct ends *ends,
                       struct err *err)
{
    const int fds[TEMPLATE_WIRE_FDS_MAX] = { ends->program[0], ends->program[1], ends->program[2],
                                             box->cgroup };
    struct template_wire_fork order;

    if (fill(box, box->template, spec, &order) < 0) {
        return err_set(err, ERR_BOX_START_FAILED, 0, "no template makes boxes of this kind");
    }
    if (send_order(box->template, &order, fds) < 0) {
        return err_set(err, ERR_BOX_START_FAILED, errno, "the template takes no orders: %s",
                       err_errno_text(errno));
    }
    return 0;
}

/* It could not be born in its cgroup: both its processes are moved there, before they have code. */
static void move(struct box *box)
{
    struct proctree tree = { .pids = alloc_zero(PROCTREE_MAX, sizeof(pid_t)) };
    bool moved = cgroup_enter(box->cgroup, box->link.pid) == 0;

    proctree_list(box->link.pid, &tree);
    for (size_t i = 0; i < tree.count; i++) {
        moved = cgroup_enter(box->cgroup, tree.pids[i]) == 0 && moved;
    }
    free(tree.pids);
    log_line(LOG_DEBUG, "forked_box_moved", "box", box->id, NULL);
    if (!moved) {
        log_line(LOG_WARNING, "box_without_cgroup", "box", box->id, NULL);
        (void)box_cgroup_remove(box);
    }
}

static void begin(struct box *box)
{
    if (box->cgroup >= 0 && box->link.report.outside) {
        move(box);
    }
    box->begun = true;
    box->begun_ns = clock_mono_ns();
    box_cgroup_begin(box);
    if (!box_cgroup_has_memory(box)) {
        watchdog_start(&box->watchdog, box->link.pid, box->limits.memory_bytes);
    }
}

static int start(struct box *box, const struct box_spec *spec, struct err *err)
{
    struct ends ends = ENDS_INIT;
    int failed;

    if (box_start_dir(box, spec, err) < 0) {
        return -1;
    }
    if (diskwatch_open(&box->diskwatch, spec->workspace) < 0) {
        return err_set(err, ERR_IO, errno, "can't open the workspace: %s", err_errno_text(errno));
    }
    box_cgroup_make(box);
    failed = ends_make(box, &ends, err) < 0 || place_order(box, spec, &ends, err) < 0;
    ends_close(&ends); /* the end of a box that dies shall be seen */
    return failed ? -1 : box_start_await(box, spec, &ends, err);
}

int box_fork(struct box *template, const struct box_spec *spec, struct box **ret_box,
             struct err *err)
{
    struct box *box = box_start_new(template->boxes, spec);

    box->engine = template->engine;
    box->template = template;
    (void)atomic_fetch_add(&template->forks, 1);
    if (start(box, spec, err) < 0) {
        if (box_cgroup_oom(box)) {
            (void)err_set(err, ERR_BOX_START_FAILED, ENOMEM,
                          "the box can't start in so little memory");
        }
        if (box->link.pidfd >= 0) {
            (void)syscall(SYS_pidfd_send_signal, box->link.pidfd, SIGKILL, NULL, 0);
        }
        box_start_abandon(box);
        return -1;
    }
    begin(box);
    *ret_box = box;
    return 0;
}

size_t box_fork_count(const struct box *template)
{
    return atomic_load(&template->forks);
}

void box_fork_close(struct box *template)
{
    (void)shutdown(template->driver, SHUT_RDWR);
}
