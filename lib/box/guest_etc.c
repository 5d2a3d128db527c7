/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: prepare the /etc that boxes see.
 * Owns: the directory it makes.
 * Threads: one, at start.
 * May include: base, tree.
 */
#include "lib/box/guest_etc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int copy_matching(int host, int dir, const char *name)
{
    for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
        if (fnmatch(copied[i], name, 0) == 0) {
            return tree_copy(host, name, dir, name);
        }
    }
    return 0;
}

static int copy_listed(int host, int dir)
{
    CLEANUP_DIR DIR *list = NULL;
    struct dirent *entry = NULL;
    int listing = openat(host, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    list = listing < 0 ? NULL : fdopendir(listing);
    if (list == NULL) {
        fd_close(listing);
        return 0;
    }
    while ((entry = readdir(list)) != NULL) {
        if (copy_matching(host, dir, entry->d_name) < 0) {
            return -1;
        }
    }
    return 0;
}

static int copy_certificates(int host, int dir)
{
    for (size_t i = 0; i < sizeof(certificates) / sizeof(certificates[0]); i++) {
        const char *parent = certificates[i][0];
        CLEANUP_FD int from = openat(host, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
        CLEANUP_FD int to = -1;

        if (from < 0) {
            continue;
        }
        if (mkdirat(dir, parent, 0755) < 0 && errno != EEXIST) {
            return -1;
        }
        to = openat(dir, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (to < 0 || tree_copy(from, certificates[i][1], to, certificates[i][1]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int fill(int dir)
{
    CLEANUP_FD int host = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < sizeof(generated) / sizeof(generated[0]); i++) {
        if (write_generated(dir, &generated[i]) < 0) {
            return -1;
        }
    }
    if (symlinkat("/usr/share/zoneinfo/Etc/UTC", dir, "localtime") < 0 ||
        symlinkat("/proc/self/mounts", dir, "mtab") < 0) {
        return -1;
    }
    if (host < 0) {
        return 0;
    }
    return copy_listed(host, dir) < 0 || copy_certificates(host, dir) < 0 ? -1 : 0;
}

int guest_etc_build(int dir, const char *name, struct err *err)
{
    CLEANUP_FD int made = -1;

    if (tree_remove(dir, name) == 0 && mkdirat(dir, name, 0755) == 0) {
        made = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (made < 0 || fchmod(made, 0755) < 0 || fill(made) < 0) {
        return err_set(err, ERR_IO, errno, "can't prepare the boxes' /etc: %s",
                       err_errno_text(errno));
    }
    return 0;
}
