/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: turn the mounts of a template into those of a box that it has just forked.
 * Owns: the mount namespace of the calling process, which must be a new one.
 * Threads: one.
 * May include: base, template.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/box/guest_etc.h"
#include "lib/box/template.h"

/* The template's own per-box directory gives way to the new box's. */
#define KERND "/run/kernd"
#define WORKSPACE "/workspace"
#define PRIVATE_FLAGS (MS_NOSUID | MS_NODEV)

/* clone3 made it, and here nothing is taken on trust: a mount must never happen in the template. */
static bool is_new_namespace(const struct template *template)
{
    struct stat status;

    return stat("/proc/self/ns/mnt", &status) == 0 &&
           (uint64_t)status.st_ino != template->mount_namespace;
}

/* No link is followed below `parent`, whose own path nobody but kernd can change. */
static int open_child(const char *parent, const char *name)
{
    int directory = open(parent, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd =
        directory < 0 ? -1 : openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    fd_close(directory);
    return fd;
}

/*
 * The new mount has the flags of the one it comes from: nosuid, nodev, and for boxes and
 * environments read-only. What is mounted below comes along: a caller's own workspace may have
 * such places, which can't be uncovered here.
 */
static bool bind_open(int fd, const char *target)
{
    char source[64];

    (void)snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
    return mount(source, target, NULL, MS_BIND | MS_REC, NULL) == 0;
}

/*
 * What the template had at `target` goes, with the private directory when that is left: for each
 * call of umount(2) the kernel waits until no processor looks at the mount any more, and lets one
 * such wait of the whole machine run at a time (fs/namespace.c, namespace_unlock; kernel/rcu).
 * A move waits for nothing. One lies upon the other there.
 */
static bool lay_off(const char *target)
{
    return mount(target, TEMPLATE_WIRE_LEFT, NULL, MS_MOVE, NULL) == 0;
}

static bool bind_box(const struct template_wire_fork *order)
{
    int fd = open_child(TEMPLATE_WIRE_BOXES, order->box);
    bool bound = fd >= 0 && lay_off(KERND) && bind_open(fd, KERND);

    fd_close(fd);
    return bound;
}

/* Is it the very directory that kernd looked at? ESTALE: it is gone, or another is in its place. */
static bool is_pinned(int fd, uint64_t device, uint64_t inode)
{
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0) {
        errno = errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? ESTALE : errno;
        return false;
    }
    errno = ESTALE;
    return (uint64_t)status.st_dev == device && (uint64_t)status.st_ino == inode;
}

static bool bind_workspace(const struct template_wire_fork *order)
{
    int fd = open_child(TEMPLATE_WIRE_WORKSPACES, order->workspace);
    bool bound = is_pinned(fd, order->device, order->inode) && bind_open(fd, WORKSPACE);

    fd_close(fd);
    return bound;
}

/* In a user namespace that is not the host's, a mount keeps what it was denied from the start. */
static bool make_readonly(const char *target)
{
    struct statvfs status;
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | PRIVATE_FLAGS;

    if (statvfs(target, &status) < 0) {
        return false;
    }
    flags |= (status.f_flag & ST_NOEXEC) != 0 ? MS_NOEXEC : 0;
    return mount(NULL, target, NULL, flags, NULL) == 0;
}

/*
 * Another box of the session can rename it and put a link in its place at any time, so the name is
 * looked up once: the mount is made where nobody else comes, and moved upon what was opened then.
 */
static bool lock_directory(const struct template_wire_fork *order)
{
    char target[64];
    bool locked;
    int fd;

    if (order->locked[0] == '\0') {
        return true;
    }
    fd = open_child(WORKSPACE, order->locked);
    (void)snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
    locked = is_pinned(fd, order->locked_device, order->locked_inode) &&
             bind_open(fd, TEMPLATE_WIRE_LEFT) && make_readonly(TEMPLATE_WIRE_LEFT) &&
             mount(TEMPLATE_WIRE_LEFT, target, NULL, MS_MOVE, NULL) == 0;
    fd_close(fd);
    return locked;
}

static bool bind_layer(const struct template_wire_fork *order)
{
    int fd = order->layer[0] == '\0' ? -1 : open_child(TEMPLATE_WIRE_LAYERS, order->layer);
    bool bound = order->layer[0] == '\0' || (fd >= 0 && bind_open(fd, TEMPLATE_WIRE_LAYER_AT));

    fd_close(fd);
    return bound;
}

/*
 * With all that was laid off. What was on the way is empty, read-only, and gone from this
 * namespace.
 */
static bool drop_private(void)
{
    if (umount2(TEMPLATE_WIRE_PRIVATE, MNT_DETACH) < 0) {
        return false;
    }
    errno = EBUSY;
    return access(TEMPLATE_WIRE_BOXES, F_OK) < 0 && access(TEMPLATE_WIRE_WORKSPACES, F_OK) < 0;
}

/* What a caller named, from aside to where the box has it (a directory that bwrap made for it). */
static bool bind_mounts(const struct template *template)
{
    bool bound = true;

    for (size_t i = 1; bound && i < template->pin_count; i++) {
        uint64_t device = 0;
        uint64_t inode = 0;
        char source[64];
        int fd;

        (void)snprintf(source, sizeof(source), TEMPLATE_WIRE_MOUNT, i);
        fd = open(source, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        /* NOLINTNEXTLINE(cert-err34-c): kernd's own numbers */
        bound = sscanf(template->pins[i], "%*c %" SCNu64 " %" SCNu64, &device, &inode) == 2 &&
                is_pinned(fd, device, inode) && bind_open(fd, strchr(template->pins[i], '/'));
        fd_close(fd);
    }
    return bound;
}

static bool mount_tmpfs(const struct template_wire_fork *order, const char *mode, const char *path)
{
    char options[64];

    if (order->tmpfs_bytes > 0) {
        (void)snprintf(options, sizeof(options), "mode=%s,size=%" PRIu64, mode, order->tmpfs_bytes);
    } else {
        (void)snprintf(options, sizeof(options), "mode=%s", mode);
    }
    return mount("tmpfs", path, "tmpfs", PRIVATE_FLAGS, options) == 0;
}

/* Of the new ipc namespace: whoever mounts it decides which (mq_overview(7)). */
static bool mount_queues(void)
{
    return mount("mqueue", "/dev/mqueue", "mqueue", 0, NULL) == 0;
}

/* Terminals of a box are in an instance of their own: those of another must not be seen. */
static bool mount_terminals(void)
{
    return lay_off("/dev/pts") && mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                                        "newinstance,ptmxmode=0666,mode=620") == 0;
}

/*
 * The template's own /proc has to be in place while a new one is made (the kernel grants no fuller
 * view than there was, fs/namespace.c), so the new one is made aside.
 */
static bool mount_processes(void)
{
    int context = fsopen("proc", FSOPEN_CLOEXEC);
    int made = -1;
    bool moved = false;

    if (context >= 0 && fsconfig(context, FSCONFIG_SET_STRING, "source", "proc", 0) == 0 &&
        fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0) {
        made = fsmount(context, FSMOUNT_CLOEXEC,
                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    }
    moved = made >= 0 && lay_off("/proc") &&
            move_mount(made, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) == 0;
    fd_close(made);
    fd_close(context);
    return moved;
}

const char *template_mounts_build(const struct template *template,
                                  const struct template_wire_fork *order)
{
    if (!is_new_namespace(template)) {
        errno = EPERM;
        return "the mount namespace is not new";
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        return "make mounts private";
    }
    if (!bind_box(order)) {
        return "mount " KERND;
    }
    if (!bind_workspace(order)) {
        return "mount " WORKSPACE;
    }
    if (!lock_directory(order)) {
        return "make what is installed read-only";
    }
    if (!bind_layer(order)) {
        return "mount " TEMPLATE_WIRE_LAYER_AT;
    }
    if (!bind_mounts(template)) {
        return "mount what the caller named";
    }
    if (!mount_tmpfs(order, "1777", "/tmp") || !mount_tmpfs(order, "0755", GUEST_ETC_HOME) ||
        !mount_tmpfs(order, "1777", "/dev/shm")) {
        return "mount private memory";
    }
    if (!mount_queues()) {
        return "mount /dev/mqueue";
    }
    if (!mount_terminals()) {
        return "mount /dev/pts";
    }
    if (!mount_processes()) {
        return "mount /proc";
    }
    if (!drop_private()) {
        return "leave the directory of all boxes";
    }
    if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | PRIVATE_FLAGS, NULL) < 0) {
        return "make / read-only";
    }
    return NULL;
}
