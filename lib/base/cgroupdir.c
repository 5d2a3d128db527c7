/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find the cgroup of this process, and whose it is.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/base/cgroupdir.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"

#define TABLE_MAX ((size_t)1 << 20)
#define SMALL_FILE ((size_t)64 * 1024)
#define PATH_SIZE 1024

/* Where cgroup2 is mounted, and which part of it (proc_pid_mountinfo(5)). False: nowhere. */
static bool find_mount(char root[static PATH_SIZE], char point[static PATH_SIZE])
{
    CLEANUP_FREE char *table = fd_read_file("/proc/self/mountinfo", TABLE_MAX, NULL);
    char *save = NULL;

    for (char *line = table == NULL ? NULL : strtok_r(table, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (strstr(line, " - cgroup2 ") != NULL &&
            sscanf(line, "%*s %*s %*s %1023s %1023s", root, point) == 2) {
            return true;
        }
    }
    return false;
}

/* Our own one as /proc/self/cgroup has it ("0::/..."): a fresh text, or NULL. */
static char *find_own(void)
{
    CLEANUP_FREE char *table = fd_read_file("/proc/self/cgroup", SMALL_FILE, NULL);
    const char *line = table == NULL ? NULL : strstr(table, "0::/");

    /* Not "10::/...". */
    if (line == NULL || (line != table && line[-1] != '\n')) {
        return NULL;
    }
    return alloc_copy(line + 3, strcspn(line + 3, "\n"));
}

void cgroupdir_find(struct cgroupdir *ret_dir)
{
    char root[PATH_SIZE];
    char point[PATH_SIZE];
    CLEANUP_FREE char *own = find_own();
    const char *below = own;

    *ret_dir = (struct cgroupdir){ .path = NULL };
    /* What lies outside of a cgroup namespace is shown with "..". */
    if (own == NULL || !find_mount(root, point) || text_starts_with(own, "/..")) {
        return;
    }
    /* A container that shares the host's namespace may see a part of the tree only. */
    if (!text_equal(root, "/")) {
        if (!text_starts_with(own, root)) {
            return;
        }
        below = own + strlen(root);
    }
    ret_dir->top = below[0] == '\0' || text_equal(below, "/");
    ret_dir->path = ret_dir->top ? alloc_text(point) : alloc_printf("%s%s", point, below);
}

void cgroupdir_done(struct cgroupdir *dir)
{
    free(dir->path);
    dir->path = NULL;
}

bool cgroupdir_writable(const char *path)
{
    CLEANUP_FREE char *processes = alloc_printf("%s/cgroup.procs", path);

    return faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0 &&
           faccessat(AT_FDCWD, processes, W_OK, AT_EACCESS) == 0;
}

bool cgroupdir_delegated(const char *path)
{
    static const char *const names[] = { "user.delegate", "trusted.delegate" };
    char value[8] = "";

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (getxattr(path, names[i], value, sizeof(value)) >= 1 && value[0] == '1') {
            return true;
        }
    }
    return false;
}

bool cgroupdir_alone(const char *path)
{
    CLEANUP_FREE char *list = alloc_printf("%s/cgroup.procs", path);
    CLEANUP_FREE char *self = alloc_printf("%d\n", (int)getpid());
    CLEANUP_FREE char *processes = fd_read_file(list, SMALL_FILE, NULL);

    return processes != NULL && text_equal(processes, self);
}
