/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: prepare the /etc that boxes see.
 * Owns: the directory it makes.
 * Threads: one at a time.
 * May include: base, tree.
 */
#include "lib/box/guest_etc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/box/tree.h"

struct generated {
    const char *name;
    const char *text;
};

static const struct generated generated[] = {
    { "passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
                "sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/bash\n"
                "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
    { "group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n" },
    { "hostname", "sandbox\n" },
    { "hosts", "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n" },
    /* Without systemd, LDAP and mDNS modules, whose sockets are not in the box. */
    { "nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nnetworks: files\n"
                       "protocols: files\nservices: files\n" },
    { "timezone", "Etc/UTC\n" },
    /* Present for programs that insist; boxes with a network get the host's mounted over it. */
    { "resolv.conf", "" },
    { "shells", "/bin/sh\n/bin/bash\n" },
};

/* Names in the host's /etc that are copied if they are there; fnmatch(3) patterns. */
static const char *const copied[] = {
    "ld.so.cache",    "alternatives", "mime.types",     "services",
    "protocols",      "os-release",   "debian_version", "lsb-release",
    "matplotlibrc",   "fonts",        "python[23]*",    "perl",
    "java-*-openjdk", "magic",        "gai.conf",       "crypto-policies",
};

/* Trust stores; the directories beside them hold private keys and are never looked into. */
static const char *const certificates[][2] = {
    { "ssl", "certs" },
    { "ssl", "openssl.cnf" },
    { "pki", "ca-trust" },
    { "pki", "tls" },
};

static int write_generated(int dir, const struct generated *file)
{
    CLEANUP_FD int fd =
        openat(dir, file->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || fd_write_full(fd, file->text, strlen(file->text)) < 0) {
        return -1;
    }
    return fchmod(fd, 0444);
}

/* What of the host's /etc is copied: parent directory ("." for itself) and name. */
struct item {
    const char *parent;
    char *name;
};

struct items {
    struct item *list;
    size_t count;
};

static void add_item(struct items *items, const char *parent, const char *name)
{
    items->list = alloc_resize(items->list, items->count + 1, sizeof(*items->list));
    items->list[items->count++] = (struct item){ .parent = parent, .name = alloc_text(name) };
}

static void free_items(struct items *items)
{
    for (size_t i = 0; i < items->count; i++) {
        free(items->list[i].name);
    }
    free(items->list);
}

static bool is_copied(const char *name)
{
    for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
        if (fnmatch(copied[i], name, 0) == 0) {
            return true;
        }
    }
    return false;
}

static void find_items(int host, struct items *items)
{
    CLEANUP_DIR DIR *list = fd_take_dir(openat(host, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct dirent *entry = NULL;

    for (size_t i = 0; i < sizeof(certificates) / sizeof(certificates[0]); i++) {
        add_item(items, certificates[i][0], certificates[i][1]);
    }
    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (is_copied(entry->d_name)) {
            add_item(items, ".", entry->d_name);
        }
    }
}

static int copy_item(int host, int dir, const struct item *item)
{
    CLEANUP_FD int from = openat(host, item->parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_FD int to = -1;

    if (from < 0) {
        return 0;
    }
    if (mkdirat(dir, item->parent, 0755) < 0 && errno != EEXIST) {
        return -1;
    }
    to = openat(dir, item->parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return to < 0 ? -1 : tree_copy(from, item->name, to, item->name);
}

static int fill(int host, int dir, const struct items *items)
{
    for (size_t i = 0; i < sizeof(generated) / sizeof(generated[0]); i++) {
        if (write_generated(dir, &generated[i]) < 0) {
            return -1;
        }
    }
    if (symlinkat("/usr/share/zoneinfo/Etc/UTC", dir, "localtime") < 0 ||
        symlinkat("/proc/self/mounts", dir, "mtab") < 0) {
        return -1;
    }
    for (size_t i = 0; i < items->count; i++) {
        if (copy_item(host, dir, &items->list[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Changes with everything that fill would write. */
static uint64_t stamp_of(int host, const struct items *items)
{
    uint64_t stamp = 0;

    for (size_t i = 0; i < sizeof(generated) / sizeof(generated[0]); i++) {
        stamp = tree_stamp_bytes(stamp, generated[i].text, strlen(generated[i].text));
    }
    for (size_t i = 0; i < items->count; i++) {
        CLEANUP_FD int from = openat(host, items->list[i].parent, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (from >= 0) {
            stamp = tree_stamp(stamp, from, items->list[i].name);
        }
    }
    return stamp;
}

static int build(int dir, const char *name, int host, const struct items *items)
{
    CLEANUP_FD int made = -1;

    if (tree_remove(dir, name) < 0 || mkdirat(dir, name, 0755) < 0) {
        return -1;
    }
    made = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return made < 0 || fchmod(made, 0755) < 0 ? -1 : fill(host, made, items);
}

/* Is the directory there, finished, and made from what the host has now? */
static bool is_current(int dir, const char *stamp_name, const char *stamp)
{
    char stored[32] = "";
    CLEANUP_FD int fd = openat(dir, stamp_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, stored, sizeof(stored) - 1);

    return got > 0 && strcmp(stored, stamp) == 0;
}

static int store_stamp(int dir, const char *stamp_name, const char *stamp)
{
    CLEANUP_FD int fd =
        openat(dir, stamp_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    return fd < 0 ? -1 : fd_write_full(fd, stamp, strlen(stamp));
}

int guest_etc_build(int dir, const char *name, struct err *err)
{
    CLEANUP_FREE char *stamp_name = alloc_printf("%s.stamp", name);
    CLEANUP_FREE char *stamp = NULL;
    CLEANUP_FD int host = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct items items = { 0 };
    int failed = 0;
    int reason = 0;

    find_items(host, &items);
    stamp = alloc_printf("%016" PRIx64, stamp_of(host, &items));
    if (!is_current(dir, stamp_name, stamp)) {
        (void)unlinkat(dir, stamp_name, 0);
        failed = build(dir, name, host, &items) < 0 || store_stamp(dir, stamp_name, stamp) < 0;
        reason = errno;
    }
    free_items(&items);
    if (failed != 0) {
        return err_set(err, ERR_IO, reason, "can't prepare the boxes' /etc: %s",
                       err_errno_text(reason));
    }
    return 0;
}
