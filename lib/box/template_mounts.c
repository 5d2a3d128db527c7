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
#include <sys/mount.h>
#include <sys/stat.h>
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

/* The new mount has the flags of the one it comes from: nosuid, nodev, and for boxes read-only. */
static bool bind_open(int fd, const char *target)
{
    char source[64];

    (void)snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
    return mount(source, target, NULL, MS_BIND, NULL) == 0;
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

static bool bind_workspace(const struct template_wire_fork *order)
{
    int fd = open_child(TEMPLATE_WIRE_WORKSPACES, order->workspace);
    struct stat status;
    bool bound = false;

    if (fd >= 0 && fstat(fd, &status) == 0) {
        errno = ESTALE;
        bound = (uint64_t)status.st_dev == order->device &&
                (uint64_t)status.st_ino == order->inode && bind_open(fd, WORKSPACE);
    }
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
