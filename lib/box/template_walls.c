/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: take every right from a forked box: user namespace, capabilities, system calls.
 * Owns: nothing.
 * Threads: one.
 * May include: base, template.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/box/guest_etc.h"
#include "lib/box/template.h"

#define CAPABILITIES_MAX 64

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    fd_close(fd);
    return written;
}

/*
 * The other namespaces stay those of the template's user namespace: from this new one nobody, with
 * whatever capabilities, has any right over them (user_namespaces(7)). Its only user is the box's.
 * Limits of processes are counted in it alone.
 */
static bool enter_user_namespace(void)
{
    const uid_t user = geteuid();
    const gid_t group = getegid();
    char users[64];
    char groups[64];

    (void)snprintf(users, sizeof(users), "%d %u 1", GUEST_ETC_UID, user);
    (void)snprintf(groups, sizeof(groups), "%d %u 1", GUEST_ETC_UID, group);
    return unshare(CLONE_NEWUSER) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 &&
           write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/gid_map", groups) &&
           write_file("/proc/self/uid_map", users);
}

static bool drop_capabilities(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

    for (unsigned long number = 0; number < CAPABILITIES_MAX; number++) {
        /* EINVAL: there is no capability of that number, nor of a higher one. */
        if (prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0) {
            if (errno != EINVAL) {
                return false;
            }
            break;
        }
    }
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 &&
           syscall(SYS_capset, &header, none) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

const char *template_walls_leave(void)
{
    /* As with a box that is booted: where the kernel knows none, there is none. */
    (void)unshare(CLONE_NEWCGROUP);
    if (!enter_user_namespace()) {
        return "enter a user namespace";
    }
    if (!drop_capabilities()) {
        return "drop capabilities";
    }
    /* PID 1 can be neither read nor traced by the program, which has the same user (init.h). */
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? NULL : "protect PID 1";
}

const char *template_walls_filter(const struct template_filter *filter)
{
    const struct sock_fprog program = {
        .len = filter->count,
        .filter = (struct sock_filter *)(void *)filter->program,
    };

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0
               ? NULL
               : "load the system call filter";
}
