/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the system call filter of kernd's own threads.
 * Owns: nothing.
 * Threads: any.
 * May include: base, libseccomp.
 */
#include "lib/box/confine.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>

/* The run-time libraries of sanitizers start programs (symbolizers) and trace (leaks at the end),
 * from any thread. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* What neither launchers nor what runs in boxes needs; a box's own filter refuses it anyway. */
static const char *const never[] = {
    /* other processes */
    "kcmp", "pidfd_getfd", "process_madvise", "process_vm_readv", "process_vm_writev",
    /* wide ways into a kernel */
    "add_key", "bpf", "io_uring_enter", "keyctl", "lookup_dcookie", "memfd_secret",
    "open_by_handle_at", "perf_event_open", "request_key", "userfaultfd",
    /* the machine's own affairs */
    "acct", "clock_settime", "create_module", "delete_module", "fanotify_init", "finit_module",
    "init_module", "ioperm", "iopl", "kexec_file_load", "kexec_load", "quotactl", "quotactl_fd",
    "reboot", "settimeofday", "swapoff", "swapon", "syslog"
};

/* A template pins its memory as the buffers of a ring that it never enters (template_study.c). */
static const char *const rings[] = { "io_uring_register", "io_uring_setup" };

/* What launchers, or programs in boxes, may need. */
static const char *const not_here[] = {
    "setns",         "unshare",        "personality", /* namespaces */
    "chroot",        "fsconfig",       "fsmount",
    "fsopen",        "fspick",         "mount",
    "mount_setattr", "move_mount",     "name_to_handle_at",
    "open_tree",     "open_tree_attr", "pivot_root",
    "umount2", /* mounts */
    "adjtimex",      "clock_adjtime",  "modify_ldt",
    "setdomainname", "sethostname",    "vhangup",
    "vmsplice"
};

static const char *const processes[] = { "execve", "execveat", "fork", "vfork" };
static const char *const tracing[] = { "ptrace" };

/* Refused when (argument & mask) == value. */
static const struct {
    const char *name;
    unsigned argument;
    scmp_datum_t mask;
    scmp_datum_t value;
} looked_at[] = {
    { "mmap", 2, PROT_WRITE | PROT_EXEC, PROT_WRITE | PROT_EXEC },
    { "mprotect", 2, PROT_EXEC, PROT_EXEC },
    { "pkey_mprotect", 2, PROT_EXEC, PROT_EXEC },
    { "shmat", 2, SHM_EXEC, SHM_EXEC },
#if !SANITIZED
    { "clone", 0, CLONE_THREAD, 0 }, /* x86 and arm: the flags come first (clone(2)) */
#endif
};

/* In order: the families that kernd, libc's resolver and launchers use, and one that an image's
 * programs may use where their caller left them the right to. */
static const scmp_datum_t families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET };
#define OWN_FAMILIES 4 /* without the last */

/* A call that libseccomp does not know is none of this machine's. 0 or negative errno. */
static int refuse(scmp_filter_ctx filter, const char *name, int error, unsigned conditions,
                  const struct scmp_arg_cmp *condition)
{
    int number = seccomp_syscall_resolve_name(name);

    return number < 0 ? 0
                      : seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((unsigned)error), number,
                                               conditions, condition);
}

#define REFUSE_ALL(filter, names) refuse_names(filter, names, sizeof(names) / sizeof((names)[0]))

static int refuse_names(scmp_filter_ctx filter, const char *const *names, size_t count)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < count; i++) {
        failed = refuse(filter, names[i], EPERM, 0, NULL);
    }
    return failed;
}

static int refuse_looked_at(scmp_filter_ctx filter)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < sizeof(looked_at) / sizeof(looked_at[0]); i++) {
        const struct scmp_arg_cmp bits = { .arg = looked_at[i].argument,
                                           .op = SCMP_CMP_MASKED_EQ,
                                           .datum_a = looked_at[i].mask,
                                           .datum_b = looked_at[i].value };

        failed = refuse(filter, looked_at[i].name, EPERM, 1, &bits);
    }
    return failed;
}

/* Everything between and beyond the first `count` families in the list. */
static int refuse_families(scmp_filter_ctx filter, size_t count)
{
    struct scmp_arg_cmp family = { .arg = 0, .op = SCMP_CMP_GT, .datum_a = families[count - 1] };
    int failed = refuse(filter, "socket", EAFNOSUPPORT, 1, &family);

    family.op = SCMP_CMP_EQ;
    for (size_t i = 0; failed == 0 && i + 1 < count; i++) {
        for (scmp_datum_t other = families[i] + 1; failed == 0 && other < families[i + 1];
             other++) {
            family.datum_a = other;
            failed = refuse(filter, "socket", EAFNOSUPPORT, 1, &family);
        }
    }
    return failed;
}

/* What a thread that starts boxes does not need, which what it starts inherits. */
static int fill_starter(scmp_filter_ctx filter)
{
    int failed = REFUSE_ALL(filter, never);

    if (failed == 0 && !SANITIZED) {
        failed = REFUSE_ALL(filter, tracing);
    }
    return failed == 0 ? refuse_families(filter, sizeof(families) / sizeof(families[0])) : failed;
}

static int fill_rings(scmp_filter_ctx filter)
{
    return REFUSE_ALL(filter, rings);
}

static int fill(scmp_filter_ctx filter)
{
    int failed = REFUSE_ALL(filter, never);

    if (failed == 0) {
        failed = REFUSE_ALL(filter, rings);
    }
    if (failed == 0) {
        failed = REFUSE_ALL(filter, not_here);
    }
    if (failed == 0 && !SANITIZED) {
        failed = REFUSE_ALL(filter, processes);
    }
    if (failed == 0 && !SANITIZED) {
        failed = REFUSE_ALL(filter, tracing);
    }
    if (failed == 0 && !SANITIZED) {
        /* Its flags lie in memory; libc then makes threads with clone(2). */
        failed = refuse(filter, "clone3", ENOSYS, 0, NULL);
    }
    if (failed == 0) {
        failed = refuse_looked_at(filter);
    }
    return failed == 0 ? refuse_families(filter, OWN_FAMILIES) : failed;
}

/* Puts the calling thread under what `rules` fills in. */
static int confine(int (*rules)(scmp_filter_ctx filter), struct err *err)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int failed = filter == NULL
                     ? -ENOMEM
                     : seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    enum err_code code = ERR_INTERNAL;

    if (failed == 0) {
        failed = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    }
    if (failed == 0) {
        failed = rules(filter);
    }
    if (failed == 0) {
        /* This thread alone (SCMP_FLTATR_CTL_TSYNC is off), no_new_privs first (CTL_NNP is on). */
        failed = seccomp_load(filter);
        code = ERR_NOT_SUPPORTED_HERE;
    }
    if (filter != NULL) {
        seccomp_release(filter);
    }
    return failed == 0 ? 0
                       : err_set(err, code, -failed, "kernd's threads can't be confined: %s",
                                 err_errno_text(-failed));
}

int confine_thread(struct err *err)
{
    return confine(fill, err);
}

int confine_starter(struct err *err)
{
    return confine(fill_starter, err);
}

int confine_rings(struct err *err)
{
    return confine(fill_rings, err);
}
