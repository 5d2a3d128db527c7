/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: explain why a launcher failed.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/box/remedy.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"

#define WORDS_SHOWN ((size_t)200)

/* A number from a file of /proc/sys; -1 when it isn't there. */
static long setting(const char *path)
{
    CLEANUP_FREE char *text = fd_read_file(path, 64, NULL);
    uint64_t value = 0;

    if (text == NULL) {
        return -1;
    }
    text[strcspn(text, "\n")] = '\0';
    return text_parse_u64(text, &value) < 0 ? -1 : (long)value;
}

void remedy_host_read(struct remedy_host *ret_host)
{
    ret_host->userns_clone = setting("/proc/sys/kernel/unprivileged_userns_clone");
    ret_host->max_user_namespaces = setting("/proc/sys/user/max_user_namespaces");
    ret_host->apparmor_userns = setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    ret_host->in_container =
        access("/run/.containerenv", F_OK) == 0 || access("/.dockerenv", F_OK) == 0;
}

static bool says(const char *words, const char *part)
{
    return strcasestr(words, part) != NULL;
}

bool remedy_namespaces_refused(const char *words)
{
    static const char *const signs[] = {
        "uid map",
        "uid_map",
        "gid map",
        "gid_map",
        "new namespace",
        "user namespace",
        "userns",
        "RTM_NEWADDR",
        "unshare",
        "loopback",
        "namespaces failed",
        "setgroups",
        "No permissions to creat",
    };

    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        if (says(words, signs[i])) {
            return true;
        }
    }
    return false;
}

void remedy_namespaces(const struct remedy_host *host, struct err *err)
{
    if (host->userns_clone == 0) {
        (void)err_remedy(err, "allow unprivileged user namespaces: "
                              "sudo sysctl kernel.unprivileged_userns_clone=1");
    } else if (host->max_user_namespaces == 0) {
        (void)err_remedy(err, "allow user namespaces: sudo sysctl user.max_user_namespaces=10000");
    } else if (host->apparmor_userns > 0) {
        (void)err_remedy(err, "AppArmor restricts user namespaces: install an AppArmor profile for "
                              "bwrap that allows userns, or "
                              "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0");
    } else if (host->in_container) {
        (void)err_remedy(err, "the container kernd runs in forbids user namespaces: allow unshare "
                              "and mount in its seccomp and AppArmor profiles "
                              "(e.g. --security-opt seccomp=unconfined)");
    } else {
        (void)err_remedy(err, "see the sysctls kernel.unprivileged_userns_clone, "
                              "user.max_user_namespaces and "
                              "kernel.apparmor_restrict_unprivileged_userns; within a chroot the "
                              "kernel gives none (use a container)");
    }
}

/* ENOSPC (user_namespaces(7)): there are some, and all that may be are in use, or nested too deep.
 */
static bool namespaces_used_up(const char *words, const struct remedy_host *host)
{
    return host->max_user_namespaces != 0 &&
           (says(words, "No space left on device") || says(words, "max_*_namespaces"));
}

char *remedy_line(const char *words)
{
    CLEANUP_BUF struct buf line = BUF_INIT(WORDS_SHOWN * 4);
    size_t size = strlen(words);

    while (size > 0 && strchr(" \t\r\n", words[size - 1]) != NULL) {
        size--;
    }
    /* The reason stands at the end, warnings before it. */
    if (size > WORDS_SHOWN) {
        words += size - WORDS_SHOWN;
        size = WORDS_SHOWN;
    }
    (void)text_utf8_repair(&line, words, size);
    if (line.size > WORDS_SHOWN) {
        line.size = WORDS_SHOWN;
        line.size -= text_utf8_partial_tail(line.data, line.size);
        line.data[line.size] = '\0';
    }
    for (size_t i = 0; i < line.size; i++) {
        if ((unsigned char)line.data[i] < ' ' || line.data[i] == 0x7f) {
            line.data[i] = ' ';
        }
    }
    return line.size == 0 ? alloc_text("") : buf_take(&line, &size);
}

int remedy_explain(const char *words, const char *exit_text, const struct remedy_host *host,
                   struct err *err)
{
    CLEANUP_FREE char *line = remedy_line(words);
    const char *shown = line[0] == '\0' ? "it said nothing" : line;

    if (says(words, "mount proc") || says(words, "/newroot/proc")) {
        (void)err_set(err, ERR_ENGINE_UNAVAILABLE, 0, "no box can mount its /proc here: %s", shown);
        return err_remedy(err, "the container kernd runs in masks /proc: give it an unmasked one "
                               "(podman: --security-opt unmask=/proc/*, docker: "
                               "--security-opt systempaths=unconfined)");
    }
    if (says(words, "Unknown option")) {
        (void)err_set(err, ERR_ENGINE_UNAVAILABLE, 0, "the launcher is too old: %s", shown);
        return err_remedy(err, "install bubblewrap 0.7 or later (Debian 12, Ubuntu 24.04)");
    }
    if (remedy_namespaces_refused(words)) {
        (void)err_set(err, ERR_ENGINE_UNAVAILABLE, 0, "no box can start here: %s", shown);
        if (namespaces_used_up(words, host)) {
            return err_remedy(err, "each box takes one or two user namespaces: sudo sysctl "
                                   "user.max_user_namespaces=10000, in a container on its host");
        }
        remedy_namespaces(host, err);
        return -1;
    }
    return err_set(err, ERR_BOX_START_FAILED, 0,
                   "the launcher ended (%s) before the box was up: %s",
                   exit_text[0] == '\0' ? "no status" : exit_text, shown);
}
