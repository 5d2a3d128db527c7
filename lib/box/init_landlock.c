/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the second wall around the box's program: a Landlock ruleset.
 * Owns: nothing; the ruleset's descriptor is the caller's.
 * Threads: one.
 * May include: base, init.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/box/guest_etc.h"
#include "lib/box/init.h"

/* Since 5.19 the right to link and rename between directories can be given (landlock(7)). */
#define FIRST_USABLE_ABI 2

/* Newer than the header of the oldest system that kernd is built on (its ABI is 2). */
#define FS_TRUNCATE (UINT64_C(1) << 14)  /* ABI 3 */
#define FS_IOCTL_DEV (UINT64_C(1) << 15) /* ABI 5 */
#define SCOPE_ABSTRACT_UNIX_SOCKET (UINT64_C(1) << 0)
#define SCOPE_SIGNAL (UINT64_C(1) << 1)

#define READING ((uint64_t)LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define RUNNING (READING | LANDLOCK_ACCESS_FS_EXECUTE)
#define WRITING (READING | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE)
#define EVERYTHING UINT64_MAX /* that the kernel knows */
/* What a rule for something that is no directory may have. */
#define OF_FILES                                                           \
    ((uint64_t)LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | \
     LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

/* struct landlock_ruleset_attr as of ABI 6; kernels take any of its earlier lengths. */
struct ruleset {
    uint64_t access_fs;
    uint64_t access_net;
    uint64_t scoped;
};

/* What is in every box; a symbolic link on this system is no place of its own. */
static const struct {
    const char *path;
    uint64_t access;
} places[] = {
    /* Listing is not divided by depth: `ls /` needs a right that holds beneath too. */
    { "/", LANDLOCK_ACCESS_FS_READ_DIR },
    { "/usr", RUNNING },
    { "/bin", RUNNING },
    { "/sbin", RUNNING },
    { "/lib", RUNNING },
    { "/lib64", RUNNING },
    { "/lib32", RUNNING },
    { "/libx32", RUNNING },
    { "/etc", READING },
    { "/proc", WRITING },
    { "/dev", WRITING | FS_IOCTL_DEV },
    { "/dev/shm", EVERYTHING },
    { "/dev/mqueue", EVERYTHING },
    { "/tmp", EVERYTHING },
    { GUEST_ETC_HOME, EVERYTHING },
    { "/run/kernd", READING },
    { "/run/kernd-lib", RUNNING },
};

/* All rights on files that this ABI knows. */
static uint64_t known_rights(uint32_t abi)
{
    uint64_t rights = ((uint64_t)LANDLOCK_ACCESS_FS_REFER << 1) - 1;

    return rights | (abi >= 3 ? FS_TRUNCATE : 0) | (abi >= 5 ? FS_IOCTL_DEV : 0);
}

static uint32_t kernel_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return abi < FIRST_USABLE_ABI ? 0 : (uint32_t)abi;
}

/* One that is not there, or leads elsewhere, gets no rule. 0 or -1. */
static int allow(int ruleset, const char *path, uint64_t access)
{
    struct landlock_path_beneath_attr rule = { .allowed_access = access };
    struct stat status;
    long failed;

    rule.parent_fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (rule.parent_fd < 0) {
        return errno == ENOENT ? 0 : -1;
    }
    if (fstat(rule.parent_fd, &status) < 0 || S_ISLNK(status.st_mode)) {
        fd_close(rule.parent_fd);
        return 0;
    }
    if (!S_ISDIR(status.st_mode)) {
        rule.allowed_access &= OF_FILES;
    }
    failed = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    fd_close(rule.parent_fd);
    return failed < 0 ? -1 : 0;
}

uint32_t init_landlock_prepare(bool in_image, int *ret_ruleset)
{
    const uint32_t abi = kernel_abi();
    const struct ruleset attributes = {
        .access_fs = known_rights(abi),
        .scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0,
    };
    size_t size = abi >= 6 ? sizeof(attributes) : sizeof(attributes.access_fs);
    int ruleset = -1;

    *ret_ruleset = -1;
    if (abi > 0) {
        ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
    }
    if (ruleset < 0) {
        return 0;
    }
    /* The image's own places are anywhere; the launcher mounts it read-only. */
    if (in_image && allow(ruleset, "/", RUNNING & attributes.access_fs) < 0) {
        fd_close(ruleset);
        return 0;
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const uint64_t access = places[i].access & attributes.access_fs;

        /* What a rule gives holds beneath: "/" has given that already. */
        if (in_image && (access & ~RUNNING) == 0) {
            continue;
        }
        if (allow(ruleset, places[i].path, access) < 0) {
            fd_close(ruleset);
            return 0;
        }
    }
    *ret_ruleset = ruleset;
    return abi;
}

int init_landlock_enter(int ruleset, char *const *pins)
{
    const uint64_t known = known_rights(kernel_abi());

    for (; *pins != NULL; pins++) {
        const char *path = strchr(*pins, '/');
        uint64_t access = (*pins)[0] == INIT_WIRE_WRITABLE ? EVERYTHING : RUNNING;

        if (path == NULL || allow(ruleset, path, access & known) < 0) {
            return -1;
        }
    }
    /* Needs no_new_privs (landlock(7)), which launchers set. */
    return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -1 : 0;
}
