/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostdir: the rules for host directories that callers name.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/work/hostdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "lib/work/path.h"

/* Refused as sources with all that is below. Removable media are the one thing in /run for users.
 */
static const char *const system_trees[] = { "/etc", "/root", "/boot", "/proc",
                                            "/sys", "/dev",  "/run",  NULL };
static const char media_tree[] = "/run/media";

/*
 * Refused as targets: with all that is below, and only themselves (and what would hold them). Below
 * /workspace a box may have left a symbolic link, and a launcher that makes the mount's directory
 * would follow it, out of the box (seen with bubblewrap 0.8).
 */
static const char *const box_trees[] = {
    "/workspace",       "/proc", "/sys", "/dev", "/run/kernd", "/run/kernd-lib", "/run/secrets",
    "/run/environment", NULL
};
static const char *const box_mounts[] = { "/etc",   "/usr",   "/bin",    "/sbin", "/lib",
                                          "/lib32", "/lib64", "/libx32", NULL };

char *hostdir_resolve(const char *path)
{
    return realpath(path, NULL);
}

static int refuse(struct err *err, const char *why)
{
    (void)err_set(err, ERR_MOUNT_REFUSED, 0, "this place of the host is refused: %s", why);
    return err_remedy(err, "use a directory of your own, for example below ~/projects");
}

/* What no path may have: the launchers' mount syntax uses ':', and logs are lines. */
static int check_text(const char *path, struct err *err)
{
    if (path[0] != '/') {
        return err_set(err, ERR_BAD_VALUE, 0, "the path must be absolute");
    }
    if (strlen(path) > PATH_BYTES_MAX) {
        return err_set(err, ERR_BAD_VALUE, 0, "the path is longer than 4095 bytes");
    }
    for (const char *at = path; *at != '\0'; at++) {
        if (*at == ':' || (unsigned char)*at < 0x20 || *at == 0x7f) {
            return err_set(err, ERR_BAD_VALUE, 0, "the path has a colon or a control character");
        }
    }
    for (const char *at = strstr(path, "/.."); at != NULL; at = strstr(at + 1, "/..")) {
        if (at[3] == '\0' || at[3] == '/') {
            return err_set(err, ERR_BAD_VALUE, 0, "the path has a '..' component");
        }
    }
    return 0;
}

static bool beneath_any(const char *path, const char *const *trees)
{
    for (; trees != NULL && *trees != NULL; trees++) {
        if (path_is_beneath(path, *trees)) {
            return true;
        }
    }
    return false;
}

/* Is path one of these places or something that holds one? */
static bool holds_any(const char *path, const char *const *places)
{
    for (; places != NULL && *places != NULL; places++) {
        if (path_is_beneath(*places, path)) {
            return true;
        }
    }
    return false;
}

static int check_home(const char *real, const char *home, struct err *err)
{
    if (home == NULL || text_equal(home, "/")) {
        return 0;
    }
    if (path_is_beneath(home, real)) {
        return refuse(err, "it is the home directory, or holds it");
    }
    if (path_is_beneath(real, home) && real[strlen(home) + 1] == '.') {
        return refuse(err, "it is a hidden directory of the home, where keys and settings live");
    }
    return 0;
}

/* The whole judgement of a resolved path. */
static int judge(const char *real, const struct hostdir_rules *rules, struct err *err)
{
    if (holds_any(real, system_trees)) {
        return refuse(err, "it is a directory of the system, or holds one");
    }
    for (const char *const *tree = system_trees; *tree != NULL; tree++) {
        bool is_home = rules->home != NULL && path_is_beneath(rules->home, *tree);

        if (path_is_beneath(real, *tree) && !is_home && !path_is_beneath(real, media_tree)) {
            return refuse(err, "it is in a directory of the system");
        }
    }
    if (check_home(real, rules->home, err) < 0) {
        return -1;
    }
    if (beneath_any(real, rules->own) || holds_any(real, rules->own)) {
        return refuse(err, "it is, holds or is in a directory of this server");
    }
    if (rules->roots != NULL && !beneath_any(real, rules->roots)) {
        return refuse(err, "it is not below an allowed root of the configuration");
    }
    /* A link may lead to a name that the launchers can't take. */
    return check_text(real, err);
}

/* Opens what stands at a resolved path, through no link that came since. -1 with errno. */
static int open_resolved(const char *real, int flags)
{
    CLEANUP_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    return root < 0 ? -1 : fd_open_beneath(root, real[1] == '\0' ? "." : real + 1, flags, 0);
}

int hostdir_open(const char *real)
{
    return open_resolved(real, O_RDONLY | O_DIRECTORY);
}

static int look(const char *real, struct stat *ret_status)
{
    CLEANUP_FD int fd = open_resolved(real, O_PATH);

    return fd < 0 ? -1 : fstat(fd, ret_status);
}

int hostdir_source(const char *path, const struct hostdir_rules *rules, char **ret_real,
                   struct stat *ret_status, struct err *err)
{
    CLEANUP_FREE char *real = NULL;
    struct stat status;

    if (check_text(path, err) < 0) {
        return -1;
    }
    real = realpath(path, NULL);
    if (real == NULL || look(real, &status) < 0) {
        return err_set(err, ERR_BAD_VALUE, errno, "the source of the mount can't be found: %s",
                       err_errno_text(errno));
    }
    if (judge(real, rules, err) < 0) {
        return -1;
    }
    if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode)) {
        return refuse(err, "it is neither a directory nor a regular file");
    }
    *ret_real = CLEANUP_TAKE(real);
    if (ret_status != NULL) {
        *ret_status = status;
    }
    return 0;
}

/*
 * What the path resolves to once its missing components are made: the resolved deepest existing
 * ancestor with the rest appended. *ret_existing is the length of the former. NULL with errno.
 */
static char *resolve_future(const char *path, size_t *ret_existing)
{
    CLEANUP_FREE char *prefix = alloc_text(path);
    CLEANUP_FREE char *real = realpath(prefix, NULL);
    const char *rest;

    while (real == NULL && errno == ENOENT && prefix[0] != '\0') {
        struct stat status;

        if (lstat(prefix, &status) == 0) {
            errno = ELOOP; /* a link to nowhere: nothing is made through it */
            return NULL;
        }
        *strrchr(prefix, '/') = '\0';
        real = realpath(prefix[0] != '\0' ? prefix : "/", NULL);
    }
    if (real == NULL) {
        return NULL;
    }
    rest = path + strlen(prefix);
    if (text_equal(real, "/")) {
        real[0] = '\0';
    }
    *ret_existing = strlen(real);
    return alloc_printf("%s%s", real[0] == '\0' && rest[0] == '\0' ? "/" : real, rest);
}

/* Makes and opens `rest` ("/a/b" or "") below the directory open as *fd, link by link refused. */
static int make_below(int *fd, const char *rest)
{
    char name[PATH_COMPONENT_MAX + 1];

    while (*rest != '\0') {
        const char *end = strchrnul(rest + 1, '/');
        int length = (int)(end - rest) - 1;
        int next;

        if (snprintf(name, sizeof(name), "%.*s", length, rest + 1) >= (int)sizeof(name)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        if (length > 0) {
            if (mkdirat(*fd, name, S_IRWXU) < 0 && errno != EEXIST) {
                return -1;
            }
            next = fd_open_beneath(*fd, name, O_RDONLY | O_DIRECTORY, 0);
            fd_clear(fd);
            *fd = next;
        }
        if (*fd < 0) {
            return -1;
        }
        rest = end;
    }
    return 0;
}

/* Where an open descriptor really is; the caller frees. NULL with errno. */
static char *location(int fd)
{
    char link[64];
    char target[PATH_BYTES_MAX + 1];
    ssize_t size;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    size = readlink(link, target, sizeof(target));
    return size < 0 ? NULL : alloc_copy(target, (size_t)size);
}

/* Opens the judged place. 0 and a descriptor, or -1 with errno. */
static int open_place(const char *future, size_t existing, int *ret_directory)
{
    CLEANUP_FREE char *base = existing > 0 ? alloc_copy(future, existing) : alloc_text("/");
    CLEANUP_FD int fd = hostdir_open(base);

    if (fd < 0 || make_below(&fd, future + existing) < 0 ||
        faccessat(fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) < 0) {
        return -1;
    }
    *ret_directory = CLEANUP_TAKE_FD(fd);
    return 0;
}

int hostdir_workspace(const char *path, const struct hostdir_rules *rules, char **ret_real,
                      int *ret_directory, struct err *err)
{
    CLEANUP_FREE char *clean = NULL;
    CLEANUP_FREE char *future = NULL;
    CLEANUP_FREE char *real = NULL;
    CLEANUP_FD int fd = -1;
    size_t existing = 0;

    if (check_text(path, err) < 0) {
        return -1;
    }
    clean = alloc_text(path);
    for (size_t end = strlen(clean); end > 1 && clean[end - 1] == '/'; end--) {
        clean[end - 1] = '\0';
    }
    future = resolve_future(clean, &existing);
    if (future == NULL) {
        return err_set(err, ERR_BAD_VALUE, errno, "the workspace directory can't be used: %s",
                       err_errno_text(errno));
    }
    if (judge(future, rules, err) < 0) {
        return -1;
    }
    if (open_place(future, existing, &fd) < 0) {
        return err_set(err, ERR_BAD_VALUE, errno,
                       "the workspace directory can't be made or used: %s", err_errno_text(errno));
    }
    /* Once more for what was really opened, should a link have come in between. */
    real = location(fd);
    if (real == NULL) {
        return err_set(err, ERR_IO, errno, "the workspace directory can't be looked at: %s",
                       err_errno_text(errno));
    }
    if (judge(real, rules, err) < 0) {
        return -1;
    }
    *ret_real = CLEANUP_TAKE(real);
    *ret_directory = CLEANUP_TAKE_FD(fd);
    return 0;
}

/* Without empty and "." components; "" stands for "/". */
static char *normalise(const char *path)
{
    char *out = alloc_zero(strlen(path) + 1, 1);
    size_t used = 0;

    while (*path != '\0') {
        const char *end = strchrnul(path + 1, '/');
        size_t length = (size_t)(end - path);

        if (length > 1 && !(length == 2 && path[1] == '.')) {
            memcpy(out + used, path, length);
            used += length;
        }
        path = end;
    }
    return out;
}

int hostdir_target(const char *path, char **ret_path, struct err *err)
{
    CLEANUP_FREE char *clean = NULL;

    if (check_text(path, err) < 0) {
        return -1;
    }
    clean = normalise(path);
    if (clean[0] == '\0' || beneath_any(clean, box_trees) || holds_any(clean, box_trees) ||
        holds_any(clean, box_mounts)) {
        (void)err_set(err, ERR_MOUNT_REFUSED, 0,
                      "nothing may be mounted over this place of the box");
        return err_remedy(err, "mount it at a directory of its own, such as /data");
    }
    *ret_path = CLEANUP_TAKE(clean);
    return 0;
}
