/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make and check private directories; keep a second daemon out.
 * Owns: the lock descriptor, handed to the caller.
 * Threads: main.
 * May include: lib/base.
 */
#include "server/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"

#define PRIVATE_MODE 0700
#define LOOK_MS 10
#define OTHERS (S_IRWXG | S_IRWXO)
#define NO_SYMLINK (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int path_error(const char *path, struct err *err)
{
    return err_set(err, ERR_IO, errno, "%s: %s", path, err_errno_text(errno));
}

/* Opens a directory just made or found; a new one gets its owner through the descriptor. */
static int open_directory(const char *path, uid_t uid, gid_t gid, struct err *err)
{
    bool is_new = mkdir(path, PRIVATE_MODE) == 0;
    CLEANUP_FD int fd = -1;

    if (!is_new && errno != EEXIST) {
        return path_error(path, err);
    }
    fd = open(path, NO_SYMLINK);
    if (fd < 0 || (is_new && geteuid() == 0 && fchown(fd, uid, gid) < 0)) {
        return path_error(path, err);
    }
    return CLEANUP_TAKE_FD(fd);
}

static int make_parents(const char *path, uid_t uid, gid_t gid, struct err *err)
{
    CLEANUP_FREE char *parent = alloc_text(path);

    for (char *slash = strchr(parent + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        struct stat status;

        *slash = '\0';
        /* Existing parents may be symlinks and anybody's; only missing ones are made. */
        if (stat(parent, &status) < 0) {
            CLEANUP_FD int fd = errno == ENOENT ? open_directory(parent, uid, gid, err) : -1;

            if (fd < 0) {
                return path_error(parent, err);
            }
        }
        *slash = '/';
    }
    return 0;
}

int dirs_make_private(const char *path, uid_t uid, gid_t gid, struct err *err)
{
    CLEANUP_FD int fd = -1;
    struct stat status;

    if (make_parents(path, uid, gid, err) < 0) {
        return -1;
    }
    fd = open_directory(path, uid, gid, err);
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &status) < 0) {
        return path_error(path, err);
    }
    if (status.st_uid != uid) {
        (void)err_set(err, ERR_IO, 0, "%s belongs to user %u, not to user %u", path,
                      (unsigned)status.st_uid, (unsigned)uid);
        return err_remedy(err, "remove it, change its owner, or name another directory");
    }
    if ((status.st_mode & OTHERS) != 0) {
        (void)err_set(err, ERR_IO, 0, "%s is open to other users (mode %03o)", path,
                      (unsigned)status.st_mode & 0777U);
        return err_remedy(err, "chmod 700 %.200s, or name another directory", path);
    }
    return 0;
}

static int locked_by_another(int fd, const char *state_dir, struct err *err)
{
    char pid[16] = "";
    ssize_t length = pread(fd, pid, sizeof(pid) - 1, 0);

    pid[length > 0 ? strspn(pid, "0123456789") : 0] = '\0';
    (void)err_set(err, ERR_CONFLICT, 0, "another kernd (process %s) already serves %s",
                  pid[0] != '\0' ? pid : "unknown", state_dir);
    return err_remedy(err, "stop it, or name another directory with --state");
}

/* The signals that end a daemon are blocked from its start on, and read once it serves. */
static bool is_told_to_end(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGTERM) > 0 || sigismember(&pending, SIGINT) > 0);
}

/* flock(2) knows no time limit. */
static int wait_for_lock(int fd, int wait_ms)
{
    const int64_t deadline = clock_deadline_after_ms(wait_ms);

    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK || clock_passed(deadline) || is_told_to_end()) {
            return -1;
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
    return 0;
}

int dirs_lock(const char *state_dir, int wait_ms, struct err *err)
{
    CLEANUP_FREE char *path = alloc_printf("%s/lock", state_dir);
    CLEANUP_FD int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    char pid[16];
    int length;

    if (fd < 0) {
        return path_error(path, err);
    }
    if (wait_for_lock(fd, wait_ms) < 0) {
        return errno == EWOULDBLOCK ? locked_by_another(fd, state_dir, err) : path_error(path, err);
    }
    length = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)length, 0) != length) {
        return path_error(path, err);
    }
    return CLEANUP_TAKE_FD(fd);
}

pid_t dirs_lock_owner(const char *state_dir)
{
    CLEANUP_FREE char *path = alloc_printf("%s/lock", state_dir);
    CLEANUP_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char text[16] = "";
    uint64_t pid = 0;

    /* A shared lock keeps no other reader out, and is given back at once. */
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK ||
        pread(fd, text, sizeof(text) - 1, 0) <= 0) {
        return 0;
    }
    text[strspn(text, "0123456789")] = '\0';
    return text_parse_u64(text, &pid) == 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}
