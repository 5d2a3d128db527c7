/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/fd.h"
#include "lib/work/remove.h"
#include "lib/work/workspace.h"

#define ORDINARY_USER 65534

int scratch_fd = -1;
char scratch_path[64];
static char base[48];
static int base_fd = -1;
static unsigned serial;

int scratch_begin(void **state)
{
    (void)state;
    (void)snprintf(base, sizeof(base), "/tmp/kernd-unit-XXXXXX");
    if (mkdtemp(base) == NULL) {
        return -1;
    }
    if (geteuid() == 0) {
        if (chown(base, ORDINARY_USER, ORDINARY_USER) < 0 || setegid(ORDINARY_USER) < 0 ||
            seteuid(ORDINARY_USER) < 0) {
            return -1;
        }
        /* Cleared by the change of user; the leak checker needs it (prctl(2)). */
        (void)prctl(PR_SET_DUMPABLE, 1);
    }
    (void)umask(077);
    base_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return base_fd < 0 ? -1 : 0;
}

int scratch_end(void **state)
{
    struct remove_left left;
    const char *slash = strrchr(base, '/');
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result;

    (void)state;
    fd_clear(&scratch_fd);
    fd_clear(&base_fd);
    if (getuid() == 0 && (seteuid(0) < 0 || setegid(0) < 0)) {
        return -1;
    }
    result = remove_tree(tmp, slash + 1, NULL, &left);
    fd_close(tmp);
    return result;
}

int scratch_fresh(void **state)
{
    char name[16];

    (void)state;
    fd_clear(&scratch_fd);
    (void)snprintf(name, sizeof(name), "%u", ++serial);
    (void)snprintf(scratch_path, sizeof(scratch_path), "%s/%s", base, name);
    if (mkdirat(base_fd, name, 0700) < 0) {
        return -1;
    }
    scratch_fd = openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return scratch_fd < 0 ? -1 : 0;
}

void scratch_file(int dir, const char *path, const char *text)
{
    char parent[4096];
    int fd;

    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        (void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
        if (mkdirat(dir, parent, 0755) < 0 && errno != EEXIST) {
            abort();
        }
    }
    fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || fd_write_full(fd, text, strlen(text)) < 0) {
        abort();
    }
    fd_close(fd);
}

int scratch_workspaces(void)
{
    char path[96];
    int parent = -1;

    (void)snprintf(path, sizeof(path), "%s/workspaces", scratch_path);
    assert_int_equal(workspace_open_parent(path, &parent, NULL), 0);
    return parent;
}

int scratch_has(int dir, const char *path)
{
    struct stat status;

    return fstatat(dir, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

const char *scratch_text(int dir, const char *path)
{
    static char text[4096];
    int fd = openat(dir, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

    text[size > 0 ? size : 0] = '\0';
    fd_close(fd);
    return text;
}
