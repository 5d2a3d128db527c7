/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the table of system calls in a box.
 * Owns: static data.
 * Threads: any.
 * May include: base.
 */
#include "lib/box/seccomp_table.h"

#include <errno.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* Not in glibc's headers under all versions. */
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

/* Of socket(2)'s second argument; the rest are flags (linux/net.h). */
#define SOCKET_TYPE 0xf

#define SHMGET_MAX (UINT64_C(64) * 1024)

#define REFUSE(call, number)                                             \
    {                                                                    \
        .name = (call), .action = SECCOMP_TABLE_ERROR, .error = (number) \
    }
#define KILL(call)                                   \
    {                                                \
        .name = (call), .action = SECCOMP_TABLE_KILL \
    }
/* Of calls by which a template makes boxes. */
#define REFUSE_IN_BOX(call, number)                                                           \
    {                                                                                         \
        .name = (call), .action = SECCOMP_TABLE_ERROR, .error = (number), .makes_boxes = true \
    }
#define KILL_IN_BOX(call)                                                 \
    {                                                                     \
        .name = (call), .action = SECCOMP_TABLE_KILL, .makes_boxes = true \
    }
#define ALLOW_RANGE(call, index, low, high, what)                                   \
    {                                                                               \
        .name = (call), .action = SECCOMP_TABLE_ALLOW, .when = SECCOMP_TABLE_RANGE, \
        .argument = (index), .first = (low), .last = (high), .note = (what)         \
    }
#define REFUSE_RANGE(call, number, index, low, high, what)                                \
    {                                                                                     \
        .name = (call), .action = SECCOMP_TABLE_ERROR, .error = (number),                 \
        .when = SECCOMP_TABLE_RANGE, .argument = (index), .first = (low), .last = (high), \
        .note = (what)                                                                    \
    }
/* Masked to 32 bits, as the kernel reads these arguments: upper bits are no way around. */
#define VALUE(call, index, value, what)                                                   \
    .name = (call), .when = SECCOMP_TABLE_BITS, .argument = (index), .first = UINT32_MAX, \
    .last = (value), .note = (what)
#define ALLOW_VALUE(call, index, value, what)                          \
    {                                                                  \
        .action = SECCOMP_TABLE_ALLOW, VALUE(call, index, value, what) \
    }
#define REFUSE_VALUE(call, number, index, value, what)                                    \
    {                                                                                     \
        .action = SECCOMP_TABLE_ERROR, .error = (number), VALUE(call, index, value, what) \
    }
#define REFUSE_BITS(call, number, index, mask, value, what)                                \
    {                                                                                      \
        .name = (call), .action = SECCOMP_TABLE_ERROR, .error = (number),                  \
        .when = SECCOMP_TABLE_BITS, .argument = (index), .first = (mask), .last = (value), \
        .note = (what)                                                                     \
    }
/* Where argument `given` is not 0: it is told that it was done. */
#define IGNORE_VALUE(call, index, value, given, what)                                      \
    {                                                                                      \
        .action = SECCOMP_TABLE_ERROR, .nonzero = (given), VALUE(call, index, value, what) \
    }
/* Any protocol (argument 2) but 0, NETLINK_ROUTE. */
#define REFUSE_NETLINK(call, number)                                                         \
    {                                                                                        \
        .name = (call), .action = SECCOMP_TABLE_ERROR, .error = (number),                    \
        .when = SECCOMP_TABLE_RANGE, .argument = 0, .first = AF_NETLINK, .last = AF_NETLINK, \
        .nonzero = 2, .note = "AF_NETLINK, not NETLINK_ROUTE"                                \
    }
#define KILL_FLAG(call, index, flag)                                              \
    {                                                                             \
        .name = (call), .action = SECCOMP_TABLE_KILL, .when = SECCOMP_TABLE_BITS, \
        .argument = (index), .first = (flag), .last = (flag), .note = #flag       \
    }

/* One row a line; the names that need no condition are packed. */
/* clang-format off */
/* Allowed whatever the arguments. */
static const char *const allowed[] = {
    /* files */
    "read", "write", "open", "openat", "openat2", "creat", "close", "close_range", "lseek",
    "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2",
    "sendfile", "splice", "tee", "vmsplice", "copy_file_range", "stat", "fstat", "lstat",
    "newfstatat", "fstatat64", "statx", "access", "faccessat", "faccessat2", "getdents",
    "getdents64", "getcwd", "chdir", "fchdir", "rename", "renameat", "renameat2", "mkdir",
    "mkdirat", "rmdir", "link", "linkat", "unlink", "unlinkat", "symlink", "symlinkat",
    "readlink", "readlinkat", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown",
    "lchown", "fchownat", "umask", "truncate", "ftruncate", "fallocate", "utime", "utimes",
    "utimensat", "futimesat", "statfs", "fstatfs", "sync", "syncfs", "fsync", "fdatasync",
    "sync_file_range", "fcntl", "flock", "dup", "dup2", "dup3", "pipe", "pipe2", "ioctl",
    "fadvise64", "readahead", "mknod", "mknodat", "getxattr", "lgetxattr", "fgetxattr",
    "setxattr", "lsetxattr", "fsetxattr", "listxattr", "llistxattr", "flistxattr", "removexattr",
    "lremovexattr", "fremovexattr", "inotify_init", "inotify_init1", "inotify_add_watch",
    "inotify_rm_watch",
    /* waiting */
    "poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1", "epoll_ctl",
    "epoll_ctl_old", "epoll_wait", "epoll_wait_old", "epoll_pwait", "epoll_pwait2", "eventfd",
    "eventfd2", "signalfd", "signalfd4", "timerfd_create", "timerfd_settime", "timerfd_gettime",
    "io_setup", "io_submit", "io_getevents", "io_pgetevents", "io_cancel", "io_destroy",
    /* memory */
    "mmap", "munmap", "mprotect", "pkey_mprotect", "pkey_alloc", "pkey_free", "mremap", "madvise",
    "brk", "msync", "mincore", "mlock", "mlock2", "munlock", "mlockall", "munlockall",
    "memfd_create", "membarrier", "mbind", "get_mempolicy", "set_mempolicy", "mseal",
    /* processes and threads */
    "clone", "fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid",
    "getpid", "getppid", "gettid", "getpgid", "getpgrp", "setpgid", "getsid", "setsid", "kill",
    "tkill", "tgkill", "pidfd_open", "pidfd_send_signal", "rt_sigaction", "rt_sigprocmask",
    "rt_sigpending", "rt_sigsuspend", "rt_sigtimedwait", "rt_sigqueueinfo", "rt_tgsigqueueinfo",
    "rt_sigreturn", "sigaltstack", "pause", "restart_syscall", "unshare", "getpriority",
    "setpriority", "ioprio_get", "ioprio_set", "sched_yield", "sched_getaffinity",
    "sched_setaffinity", "sched_getparam", "sched_setparam", "sched_getscheduler",
    "sched_setscheduler", "sched_get_priority_max", "sched_get_priority_min",
    "sched_rr_get_interval", "sched_getattr", "sched_setattr", "prctl", "arch_prctl",
    "set_tid_address", "set_robust_list", "get_robust_list", "futex", "futex_waitv", "futex_wait",
    "futex_wake", "futex_requeue", "rseq", "getcpu", "getrlimit", "setrlimit", "prlimit64",
    "getrusage", "times", "sysinfo", "uname", "getrandom",
    /* who */
    "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "setuid",
    "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "setfsuid",
    "setfsgid", "capget", "capset",
    /* time */
    "time", "gettimeofday", "clock_gettime", "clock_getres", "nanosleep", "clock_nanosleep",
    "alarm", "getitimer", "setitimer", "timer_create", "timer_settime", "timer_gettime",
    "timer_getoverrun", "timer_delete",
    /* sockets */
    "connect", "bind", "listen", "accept", "accept4", "getsockname", "getpeername", "sendto",
    "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "shutdown", "setsockopt",
    "getsockopt",
    /* System V and POSIX message queues, semaphores, shared memory */
    "shmat", "shmdt", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget",
    "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive",
    "mq_notify", "mq_getsetattr",
    /* a program may confine itself further */
    "seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self",
};

/* The rest of the list. */
static const struct seccomp_table_row list[] = {
    /* refused as if unknown; the reason is in SECURITY.md */
    REFUSE_IN_BOX("clone3", ENOSYS),
    REFUSE("io_uring_setup", ENOSYS),
    REFUSE("io_uring_enter", ENOSYS),
    REFUSE("io_uring_register", ENOSYS),
    REFUSE("userfaultfd", ENOSYS),
    REFUSE("perf_event_open", ENOSYS),
    REFUSE("add_key", ENOSYS),
    REFUSE("request_key", ENOSYS),
    REFUSE("keyctl", ENOSYS),
    REFUSE("syslog", ENOSYS),
    REFUSE("name_to_handle_at", ENOSYS),
    REFUSE("open_by_handle_at", ENOSYS),
    REFUSE("fanotify_init", ENOSYS),
    REFUSE("fanotify_mark", ENOSYS),
    REFUSE("kcmp", ENOSYS),
    REFUSE("pidfd_getfd", ENOSYS),
    REFUSE("process_madvise", ENOSYS),
    REFUSE("process_mrelease", ENOSYS),
    REFUSE("memfd_secret", ENOSYS),
    REFUSE("migrate_pages", ENOSYS),
    REFUSE("move_pages", ENOSYS),
    REFUSE("lookup_dcookie", ENOSYS),
    REFUSE("remap_file_pages", ENOSYS),
    REFUSE("modify_ldt", ENOSYS),
    REFUSE("statmount", ENOSYS),
    REFUSE("listmount", ENOSYS),
    /* refused as the kernel would for a caller without privilege */
    REFUSE("chroot", EPERM),
    REFUSE("acct", EPERM),
    REFUSE("quotactl", EPERM),
    REFUSE("quotactl_fd", EPERM),
    REFUSE("settimeofday", EPERM),
    REFUSE("clock_settime", EPERM),
    REFUSE("clock_adjtime", EPERM),
    REFUSE("adjtimex", EPERM),
    REFUSE("sethostname", EPERM),
    REFUSE("setdomainname", EPERM),
    REFUSE("vhangup", EPERM),
    REFUSE("iopl", EPERM),
    REFUSE("ioperm", EPERM),
    /* nobody needs these by accident: an attempt to get out */
    KILL_IN_BOX("mount"),
    KILL_IN_BOX("umount2"),
    KILL("pivot_root"),
    KILL_IN_BOX("move_mount"),
    KILL("open_tree"),
    KILL("open_tree_attr"),
    KILL_IN_BOX("fsopen"),
    KILL_IN_BOX("fsconfig"),
    KILL_IN_BOX("fsmount"),
    KILL("fspick"),
    KILL("mount_setattr"),
    KILL_IN_BOX("setns"),
    KILL("ptrace"),
    KILL("process_vm_readv"),
    KILL("process_vm_writev"),
    KILL("bpf"),
    KILL("init_module"),
    KILL("finit_module"),
    KILL("delete_module"),
    KILL("create_module"),
    KILL("kexec_load"),
    KILL("kexec_file_load"),
    KILL("reboot"),
    KILL("swapon"),
    KILL("swapoff"),
    /* Such segments live on, unseen, when nobody has them attached: a little, no more. */
    ALLOW_RANGE("shmget", 1, 0, SHMGET_MAX, "up to 64 KiB"),
    REFUSE_RANGE("shmget", ENOSPC, 1, SHMGET_MAX + 1, UINT64_MAX, "larger"),
    /* socket(2) and socketpair(2) by family */
    ALLOW_RANGE("socket", 0, AF_UNIX, AF_INET, "AF_UNIX, AF_INET"),
    ALLOW_RANGE("socket", 0, AF_INET6, AF_INET6, "AF_INET6"),
    ALLOW_RANGE("socket", 0, AF_NETLINK, AF_NETLINK, "AF_NETLINK"),
    REFUSE_RANGE("socket", EAFNOSUPPORT, 0, 0, AF_UNIX - 1, "AF_UNSPEC"),
    REFUSE_RANGE("socket", EAFNOSUPPORT, 0, AF_INET + 1, AF_INET6 - 1, "other families"),
    REFUSE_RANGE("socket", EAFNOSUPPORT, 0, AF_INET6 + 1, AF_NETLINK - 1, "other families"),
    REFUSE_RANGE("socket", EAFNOSUPPORT, 0, AF_NETLINK + 1, UINT64_MAX, "other families"),
    ALLOW_RANGE("socketpair", 0, AF_UNIX, AF_UNIX, "AF_UNIX"),
    REFUSE_RANGE("socketpair", EAFNOSUPPORT, 0, AF_UNIX + 1, UINT64_MAX, "other families"),
    /* personality(2): what is harmless */
    ALLOW_VALUE("personality", 0, 0, "PER_LINUX"),
    ALLOW_VALUE("personality", 0, 0x8, "PER_LINUX32"),
    ALLOW_VALUE("personality", 0, 0x20000, "UNAME26"),
    ALLOW_VALUE("personality", 0, 0x40000, "ADDR_NO_RANDOMIZE"),
    ALLOW_VALUE("personality", 0, UINT32_MAX, "query"),
};

static const struct seccomp_table_row walls[] = {
    /* clone3 hides its flags in memory, so it is refused whole and libc falls back to clone. */
    KILL_FLAG("clone", 0, CLONE_NEWNS),
    KILL_FLAG("clone", 0, CLONE_NEWCGROUP),
    KILL_FLAG("clone", 0, CLONE_NEWUTS),
    KILL_FLAG("clone", 0, CLONE_NEWIPC),
    KILL_FLAG("clone", 0, CLONE_NEWUSER),
    KILL_FLAG("clone", 0, CLONE_NEWPID),
    KILL_FLAG("clone", 0, CLONE_NEWNET),
    KILL_FLAG("unshare", 0, CLONE_NEWNS),
    KILL_FLAG("unshare", 0, CLONE_NEWCGROUP),
    KILL_FLAG("unshare", 0, CLONE_NEWUTS),
    KILL_FLAG("unshare", 0, CLONE_NEWIPC),
    KILL_FLAG("unshare", 0, CLONE_NEWUSER),
    KILL_FLAG("unshare", 0, CLONE_NEWPID),
    KILL_FLAG("unshare", 0, CLONE_NEWNET),
    KILL_FLAG("unshare", 0, CLONE_NEWTIME),
    /* of the netlink protocols, routing alone: name resolution asks it for addresses */
    REFUSE_NETLINK("socket", EPROTONOSUPPORT),
    /* Of the protocols of IP, those by whose sockets anybody makes the kernel load a module. */
    REFUSE_RANGE("socket", EPROTONOSUPPORT, 2, IPPROTO_ICMPV6 + 1, UINT64_MAX,
                 "a protocol above IPPROTO_ICMPV6"),
    REFUSE_VALUE("socket", EPROTONOSUPPORT, 2, IPPROTO_DCCP, "IPPROTO_DCCP"),
    REFUSE_BITS("socket", ESOCKTNOSUPPORT, 1, SOCKET_TYPE, SOCK_DCCP, "SOCK_DCCP"),
    /* The same of terminals: line disciplines, which are for serial lines. */
    REFUSE_VALUE("ioctl", EPERM, 1, TIOCSETD, "TIOCSETD"),
    /* typing into another terminal */
    REFUSE_VALUE("ioctl", EPERM, 1, TIOCSTI, "TIOCSTI"),
    REFUSE_VALUE("ioctl", EPERM, 1, TIOCLINUX, "TIOCLINUX"),
    /* A limit that kernd-init, of the same user, is past already (RLIMIT_CPU) would end the box. */
    REFUSE_VALUE("prlimit64", EPERM, 0, 1, "process 1"),
    /* With any limit of core files but kernd's a crash starts the host's handler (init_state.c). An
     * error would end programs that want to have none (gpg). */
    IGNORE_VALUE("prlimit64", 1, RLIMIT_CORE, 2, "a new RLIMIT_CORE"),
    IGNORE_VALUE("setrlimit", 0, RLIMIT_CORE, 1, "a new RLIMIT_CORE"),
};
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool list_at(size_t index, struct seccomp_table_row *ret_row)
{
    if (index < COUNT(allowed)) {
        *ret_row = (struct seccomp_table_row){ .name = allowed[index] };
    } else if (index - COUNT(allowed) < COUNT(list)) {
        *ret_row = list[index - COUNT(allowed)];
    }
    return index < COUNT(allowed) + COUNT(list);
}

static bool walls_at(size_t index, struct seccomp_table_row *ret_row)
{
    if (index < COUNT(walls)) {
        *ret_row = walls[index];
    }
    return index < COUNT(walls);
}

static bool template_list_at(size_t index, struct seccomp_table_row *ret_row)
{
    const bool found = list_at(index, ret_row);

    if (found && ret_row->makes_boxes) {
        *ret_row = (struct seccomp_table_row){ .name = ret_row->name };
    }
    return found;
}

static bool forked_walls_at(size_t index, struct seccomp_table_row *ret_row)
{
    size_t before = COUNT(walls);

    for (size_t i = 0; index >= COUNT(walls) && i < COUNT(list); i++) {
        if (list[i].makes_boxes && before++ == index) {
            *ret_row = list[i];
            return true;
        }
    }
    return walls_at(index, ret_row);
}

bool seccomp_table_at(enum seccomp_table_program program, size_t index,
                      struct seccomp_table_row *ret_row)
{
    switch (program) {
    case SECCOMP_TABLE_LIST:
        return list_at(index, ret_row);
    case SECCOMP_TABLE_WALLS:
        return walls_at(index, ret_row);
    case SECCOMP_TABLE_TEMPLATE_LIST:
        return template_list_at(index, ret_row);
    case SECCOMP_TABLE_FORKED_WALLS:
        break;
    }
    return forked_walls_at(index, ret_row);
}
