/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: get a cgroup of the daemon's own, from systemd or by root's means.
 * Owns: nothing.
 * Threads: main, before any other starts.
 * May include: server, lib/base.
 */
#include "server/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cgroupdir.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/text.h"

#define ASK_MS 2000
#define LOOK_MS 5
#define NAME "kernd-"
/* Where a container's other processes go: a cgroup that has controllers may hold none itself. */
#define OTHERS "others"
#define SMALL_FILE ((size_t)64 * 1024)

/* ---- systemd ---- */

static void close_bus(sd_bus **bus)
{
    (void)sd_bus_flush_close_unref(*bus);
}

static void free_message(sd_bus_message **message)
{
    (void)sd_bus_message_unref(*message);
}

/* One StartTransientUnit for this process. 0 or a negative errno. */
static int ask_for(sd_bus *bus, const char *name)
{
    __attribute__((cleanup(free_message))) sd_bus_message *call = NULL;
    __attribute__((cleanup(free_message))) sd_bus_message *reply = NULL;
    int error = sd_bus_message_new_method_call(
        bus, &call, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager", "StartTransientUnit");

    if (error >= 0) {
        error = sd_bus_message_append(call, "ssa(sv)a(sa(sv))", name, "fail", 4, "Description", "s",
                                      "Local HTTP/JSON sandbox server", "PIDs", "au", 1,
                                      (uint32_t)getpid(), "Delegate", "b", 1, "CollectMode", "s",
                                      "inactive-or-failed", 0);
    }
    return error < 0 ? error : sd_bus_call(bus, call, (uint64_t)ASK_MS * 1000, NULL, &reply);
}

static bool is_in(const char *name)
{
    struct cgroupdir own;
    bool is_there;

    cgroupdir_find(&own);
    is_there = own.path != NULL && text_ends_with(own.path, name);
    cgroupdir_done(&own);
    return is_there;
}

/* The answer says that a job was queued; the move is what matters. */
static bool await_move(const char *name, int64_t deadline)
{
    while (!is_in(name)) {
        if (clock_passed(deadline)) {
            return false;
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
    return true;
}

static void ask(void)
{
    __attribute__((cleanup(close_bus))) sd_bus *bus = NULL;
    CLEANUP_FREE char *name = alloc_printf(NAME "%d.scope", (int)getpid());
    int64_t deadline = clock_deadline_after_ms(ASK_MS);
    int error = sd_bus_open_user(&bus);

    if (error >= 0) {
        error = ask_for(bus, name);
    }
    if (error < 0) {
        log_line(LOG_DEBUG, "no scope from the user's systemd", "why", err_errno_text(-error),
                 NULL);
    } else if (await_move(name, deadline)) {
        log_line(LOG_DEBUG, "runs in a scope", "name", name, NULL);
    }
}

/* ---- root ---- */

static int put(int directory, const char *file, const char *text)
{
    CLEANUP_FD int fd = openat(directory, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    return fd >= 0 && write(fd, text, strlen(text)) >= 0 ? 0 : -1;
}

/* A predecessor's, as far as nothing lives in it; it could not remove what root had made. */
static void remove_old(int parent, const char *name)
{
    CLEANUP_DIR DIR *list =
        fd_take_dir(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const struct dirent *entry;

    if (list == NULL) {
        return;
    }
    while ((entry = readdir(list)) != NULL) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            (void)unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR);
        }
    }
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

static bool is_dead(const char *pid)
{
    uint64_t number;

    return text_parse_u64(pid, &number) == 0 && number > 0 && number < INT32_MAX &&
           kill((pid_t)number, 0) < 0 && errno == ESRCH;
}

static void sweep(int parent)
{
    CLEANUP_DIR DIR *list = fd_take_dir(openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *entry;

    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (text_starts_with(entry->d_name, NAME) && is_dead(entry->d_name + strlen(NAME))) {
            remove_old(parent, entry->d_name);
        }
    }
}

/* What a delegated cgroup's new owner must be able to write (cgroups(7), delegation). */
static int give(int fd, const struct privilege_account *account)
{
    static const char *const files[] = { ".", "cgroup.procs", "cgroup.threads",
                                         "cgroup.subtree_control" };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (fchownat(fd, files[i], account->uid, account->gid, AT_SYMLINK_NOFOLLOW) < 0) {
            return -1;
        }
    }
    return 0;
}

static void move_others(int parent)
{
    CLEANUP_BUF struct buf list = BUF_INIT(SMALL_FILE);
    CLEANUP_FD int fd = openat(parent, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    char *save = NULL;

    if (fd < 0 || fd_read_to_end(fd, &list, NULL) < 0 || list.size == 0 ||
        (mkdirat(parent, OTHERS, 0755) < 0 && errno != EEXIST)) {
        return;
    }
    for (char *pid = strtok_r(list.data, "\n", &save); pid != NULL;
         pid = strtok_r(NULL, "\n", &save)) {
        (void)put(parent, OTHERS "/cgroup.procs", pid);
    }
}

/* Hands the controllers that are there to the children. */
static void hand_on(int parent, bool top)
{
    static const char *const orders[] = { "+memory", "+pids", "+cpu" };

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        if (put(parent, "cgroup.subtree_control", orders[i]) < 0 && errno == EBUSY && top) {
            move_others(parent);
            (void)put(parent, "cgroup.subtree_control", orders[i]);
        }
    }
}

static void make(const struct cgroupdir *own, const struct privilege_account *account)
{
    CLEANUP_FREE char *name = alloc_printf(NAME "%d", (int)getpid());
    CLEANUP_FD int parent = open(own->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_FD int fd = -1;

    if (parent < 0) {
        return;
    }
    sweep(parent);
    if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST) {
        return;
    }
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || give(fd, account) < 0 || put(fd, "cgroup.procs", "0") < 0) {
        (void)unlinkat(parent, name, AT_REMOVEDIR);
        return;
    }
    hand_on(parent, own->top);
    log_line(LOG_DEBUG, "runs in a cgroup of its own", "name", name, NULL);
}

void scope_enter(const struct privilege_account *account)
{
    struct cgroupdir own;

    cgroupdir_find(&own);
    if (own.path == NULL) {
        return;
    }
    if (geteuid() == 0) {
        /* What another manager arranges, a login's session, say, is left alone. */
        if (cgroupdir_writable(own.path) && (own.top || cgroupdir_delegated(own.path))) {
            make(&own, account);
        }
    } else if (!cgroupdir_writable(own.path) || own.top ||
               (!cgroupdir_delegated(own.path) && !cgroupdir_alone(own.path))) {
        ask();
    }
    cgroupdir_done(&own);
}
