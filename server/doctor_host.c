/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: look at the host and at the daemon's places.
 * Owns: nothing.
 * Threads: main.
 * May include: server, sandbox.h, lib/base.
 */
#include "server/doctor_host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/sandbox/sandbox.h"
#include "server/dirs.h"
#include "server/listen.h"
#include "server/places.h"

#define KERNEL_MAJOR 5 /* close_range, openat2, epoll_pwait2, unprivileged overlayfs: 5.11 */
#define KERNEL_MINOR 11
#define DESCRIPTORS_LOW 4096
#define NAMESPACES_LOW 1000
/* 2025-01-01: nobody's clock is right before the program was written. */
#define OLDEST_WALL_MS INT64_C(1735689600000)
#define CLOCK_SLACK_MS (INT64_C(60) * 1000)
#define SPACE_FLOOR_MB UINT64_C(64) /* below it new work is refused */
#define SPACE_LOW_MB UINT64_C(1024)
#define OTHERS (S_IRWXG | S_IRWXO)
#define DEFAULT_PORT "127.0.0.1:5376"

/* ---- the host ---- */

static void check_kernel(struct doctor_report *report)
{
    struct utsname name = { .release = "" };
    unsigned major = 0;
    unsigned minor = 0;
    bool is_known;
    bool is_new;

    (void)uname(&name);
    /* NOLINTNEXTLINE(cert-err34-c): a release that is no number is told as such. */
    is_known = sscanf(name.release, "%u.%u", &major, &minor) == 2;
    is_new = major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR);
    doctor_report_add(report, "kernel", !is_known || is_new ? DOCTOR_OK : DOCTOR_FAIL, "%s %s",
                      name.sysname, name.release);
    doctor_report_fix(report, !is_known || is_new ? NULL : "install Linux 5.11 or later");
}

static void check_descriptors(struct doctor_report *report)
{
    struct rlimit limit = { .rlim_max = 0 };
    bool is_low;

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    is_low = limit.rlim_max < DESCRIPTORS_LOW;
    doctor_report_add(report, "descriptors", is_low ? DOCTOR_WARN : DOCTOR_OK, "%llu at most",
                      (unsigned long long)limit.rlim_max);
    doctor_report_fix(report, is_low ? "raise LimitNOFILE= of the unit, or nofile in limits.conf(5)"
                                     : NULL);
}

static void check_clock(struct doctor_report *report)
{
    const int64_t now = clock_wall_ms();
    char text[CLOCK_TEXT_SIZE];
    const bool is_old = now < OLDEST_WALL_MS;

    doctor_report_add(report, "clock", is_old ? DOCTOR_WARN : DOCTOR_OK, "%s",
                      clock_format_utc(now, text));
    doctor_report_fix(report, is_old ? "set the clock: sudo timedatectl set-ntp true" : NULL);
}

/* Whether the user's services outlive his sessions matters to those who have ours as a unit. */
static void check_linger(struct doctor_report *report)
{
    struct privilege_account account;
    const char *home = places_environment("HOME");
    CLEANUP_FREE char *unit =
        alloc_printf("%s/.config/systemd/user/kernd.socket", home != NULL ? home : "");
    CLEANUP_FREE char *linger = NULL;
    bool lingers;

    privilege_current(&account);
    linger = alloc_printf("/var/lib/systemd/linger/%s", account.name);
    if (access("/run/systemd/system", F_OK) < 0) {
        doctor_report_add(report, "systemd", DOCTOR_OK,
                          "not there: use kernd start instead of kernd service");
        return;
    }
    if (account.uid == 0 || access(unit, F_OK) < 0) {
        doctor_report_add(report, "systemd", DOCTOR_OK, "there; no unit of %s is installed",
                          account.name);
        return;
    }
    lingers = access(linger, F_OK) == 0;
    doctor_report_add(report, "linger", lingers ? DOCTOR_OK : DOCTOR_WARN,
                      lingers ? "the service outlives the sessions of %s"
                              : "the service ends when %s logs out",
                      account.name);
    doctor_report_fix(report,
                      lingers ? NULL : "to keep it after logging out: loginctl enable-linger");
}

void doctor_host_check(struct doctor_report *report)
{
    check_kernel(report);
    check_descriptors(report);
    check_clock(report);
    check_linger(report);
}

/* ---- user namespaces ---- */

static void check_setting(struct doctor_report *report, const char *name, const char *fix,
                          const char *found, long value)
{
    const enum doctor_status status = fix == NULL ? DOCTOR_OK : DOCTOR_FAIL;

    if (value < 0) {
        doctor_report_add(report, name, DOCTOR_OK, "this kernel has no %s", found);
    } else {
        doctor_report_add(report, name, status, "%s = %ld", found, value);
        doctor_report_fix(report, fix);
    }
}

static void check_apparmor(struct doctor_report *report, const struct remedy_host *host,
                           bool box_starts)
{
    struct err advice = ERR_INIT;

    if (host->apparmor_userns > 0 && !box_starts) {
        remedy_namespaces(host, &advice);
    }
    check_setting(report, "apparmor", advice.remedy, "kernel.apparmor_restrict_unprivileged_userns",
                  host->apparmor_userns);
}

void doctor_host_check_namespaces(struct doctor_report *report, bool box_starts)
{
    struct remedy_host host;
    struct err advice = ERR_INIT;

    remedy_host_read(&host);
    remedy_namespaces(&host, &advice);
    check_setting(report, "namespaces",
                  host.userns_clone == 0 && !box_starts ? advice.remedy : NULL,
                  "kernel.unprivileged_userns_clone", host.userns_clone);
    if (host.max_user_namespaces > 0 && host.max_user_namespaces < NAMESPACES_LOW) {
        doctor_report_add(report, "namespaces", DOCTOR_WARN, "user.max_user_namespaces = %ld",
                          host.max_user_namespaces);
        doctor_report_fix(report,
                          "sudo sysctl user.max_user_namespaces=10000: each box takes one or two");
    } else {
        check_setting(report, "namespaces", host.max_user_namespaces == 0 ? advice.remedy : NULL,
                      "user.max_user_namespaces", host.max_user_namespaces);
    }
    check_apparmor(report, &host, box_starts);
}

/* ---- places ---- */

static void check_directory(struct doctor_report *report, const char *name, const char *path,
                            uid_t uid)
{
    CLEANUP_FREE char *fix = NULL;
    struct stat status;

    if (lstat(path, &status) < 0) {
        const bool is_new = errno == ENOENT;

        doctor_report_add(report, name, is_new ? DOCTOR_OK : DOCTOR_FAIL,
                          is_new ? "%s, not there yet" : "%s can't be reached", path);
        doctor_report_fix(report,
                          is_new ? NULL : "name another directory with --state and --runtime");
        return;
    }
    if (!S_ISDIR(status.st_mode) || status.st_uid != uid) {
        doctor_report_add(report, name, DOCTOR_FAIL, "%s is no directory of user %u", path,
                          (unsigned)uid);
        doctor_report_fix(report, "remove it, change its owner, or name another directory");
        return;
    }
    if ((status.st_mode & OTHERS) != 0) {
        fix = alloc_printf("chmod 700 %s", path);
        doctor_report_add(report, name, DOCTOR_FAIL, "%s is open to other users (mode %03o)", path,
                          (unsigned)status.st_mode & 0777U);
        doctor_report_fix(report, fix);
        return;
    }
    doctor_report_add(report, name, DOCTOR_OK, "%s", path);
}

/* The directory, or what is there of the path to it. */
static int look_at_disk(const char *path, struct statvfs *ret_space)
{
    CLEANUP_FREE char *at = alloc_text(path);
    char *slash;

    while (statvfs(at, ret_space) < 0) {
        slash = strrchr(at, '/');
        if (errno != ENOENT || slash == NULL || slash == at) {
            return -1;
        }
        *slash = '\0';
    }
    return 0;
}

static void check_disk(struct doctor_report *report, const char *path)
{
    struct statvfs space;
    uint64_t free_mb;

    if (look_at_disk(path, &space) < 0) {
        doctor_report_add(report, "disk", DOCTOR_WARN, "%s: %s", path, err_errno_text(errno));
        return;
    }
    free_mb = (uint64_t)space.f_bavail * space.f_frsize >> 20;
    if ((space.f_flag & ST_RDONLY) != 0) {
        doctor_report_add(report, "disk", DOCTOR_FAIL, "%s is on a read-only disk", path);
        doctor_report_fix(report, "name another directory with --state");
        return;
    }
    doctor_report_add(report, "disk",
                      free_mb < SPACE_FLOOR_MB ? DOCTOR_FAIL
                      : free_mb < SPACE_LOW_MB ? DOCTOR_WARN
                                               : DOCTOR_OK,
                      "%llu MiB free for the state", (unsigned long long)free_mb);
    doctor_report_fix(report,
                      free_mb < SPACE_LOW_MB
                          ? "free disk space, or name a directory on a larger disk with --state"
                          : NULL);
}

/* Times that are kept would be in the future if the clock was set back. */
static void check_times(struct doctor_report *report, const char *state_dir)
{
    CLEANUP_FREE char *path = alloc_printf("%s/kernd.db", state_dir);
    struct stat status;

    if (stat(path, &status) == 0 &&
        (int64_t)status.st_mtim.tv_sec * 1000 > clock_wall_ms() + CLOCK_SLACK_MS) {
        doctor_report_add(report, "clock", DOCTOR_WARN,
                          "the state was written in the future: the clock was set back");
        doctor_report_fix(report, "set the clock");
    }
}

void doctor_host_check_places(struct doctor_report *report, const struct config *config,
                              const struct privilege_account *account)
{
    doctor_report_add(report, "library", DOCTOR_OK, "%s", config->library_dir);
    check_directory(report, "state", config->state_dir, account->uid);
    check_directory(report, "runtime", config->runtime_dir, account->uid);
    check_disk(report, config->state_dir);
    check_times(report, config->state_dir);
}

/* ---- addresses ---- */

static void check_address(struct doctor_report *report, const char *address)
{
    struct listen_set set = { .count = 0 };
    struct err err = ERR_INIT;

    if (listen_open(&set, address, &err) < 0) {
        doctor_report_add(report, "address", DOCTOR_FAIL, "%s", err.msg);
        doctor_report_fix(report, err.remedy);
        return;
    }
    doctor_report_add(report, "address", listen_is_local(&set.sockets[0]) ? DOCTOR_OK : DOCTOR_WARN,
                      "%s is free", set.sockets[0].name);
    doctor_report_fix(report,
                      listen_is_local(&set.sockets[0])
                          ? NULL
                          : "other machines can reach it, without encryption: use 127.0.0.1");
    listen_close(&set);
}

void doctor_host_check_addresses(struct doctor_report *report, const struct config *config)
{
    const pid_t owner = dirs_lock_owner(config->state_dir);

    if (owner > 0) {
        doctor_report_add(report, "server", DOCTOR_OK, "runs already (process %d)", (int)owner);
        return;
    }
    doctor_report_add(report, "server", DOCTOR_OK, "does not run");
    if (config->listens.count == 0) {
        check_address(report, DEFAULT_PORT);
    }
    for (size_t i = 0; i < config->listens.count; i++) {
        /* Its directory is made at the start. */
        if (!text_starts_with(config->listens.items[i], "unix:")) {
            check_address(report, config->listens.items[i]);
        }
    }
}
