/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find a launcher and its version.
 * Owns: nothing.
 * Threads: any.
 * May include: base, spawn.
 */
#include "lib/box/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/box/spawn.h"

#define VERSION_MS 2000
#define VERSION_MAX ((size_t)4096)

static bool is_program(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

char *launcher_find(const char *given, const char *name)
{
    static const char *const directories[] = { "/usr/local/bin", "/usr/bin", "/bin" };

    if (given != NULL) {
        CLEANUP_FREE char *path = realpath(given, NULL);

        return path != NULL && is_program(path) ? CLEANUP_TAKE(path) : NULL;
    }
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
        CLEANUP_FREE char *path = alloc_printf("%s/%s", directories[i], name);

        if (is_program(path)) {
            return CLEANUP_TAKE(path);
        }
    }
    return NULL;
}

bool launcher_raises(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && ((status.st_mode & (S_ISUID | S_ISGID)) != 0 ||
                                        getxattr(path, "security.capability", NULL, 0) > 0);
}

/* Reads until the other end closes, the time is over or out is full. */
static void collect(int fd, struct buf *out, int64_t deadline)
{
    struct pollfd watched = { .fd = fd, .events = POLLIN };
    char piece[512];
    ssize_t got = 1;

    while (got > 0 && out->size < out->max && poll(&watched, 1, clock_poll_ms(deadline, -1)) > 0) {
        got = read(fd, piece, sizeof(piece));
        if (got > 0) {
            (void)buf_append_some(out, piece, (size_t)got);
        }
    }
}

static char *word_with_digit(const char *text)
{
    const char *digit = strpbrk(text, "0123456789");

    return digit == NULL ? alloc_text("")
                         : alloc_printf("%.*s", (int)strcspn(digit, " \t\n"), digit);
}

char *launcher_version(const char *path)
{
    CLEANUP_BUF struct buf said = BUF_INIT(VERSION_MAX);
    CLEANUP_FD int output = -1;
    CLEANUP_FD int theirs = -1;
    CLEANUP_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    char *const argv[] = { alloc_text(path), alloc_text("--version"), NULL };
    char *const environment[] = { NULL };
    struct spawn_child child = { 0 };
    int64_t deadline = clock_deadline_after_ms(VERSION_MS);

    if (fd_pipe(&output, &theirs) == 0 && null_fd >= 0) {
        const int fds[] = { null_fd, theirs, null_fd };
        const struct spawn_request request = { .path = path,
                                               .argv = argv,
                                               .environment = environment,
                                               .fds = fds,
                                               .fd_count = 3,
                                               .cgroup_fd = -1 };

        if (spawn_start(&request, &child, NULL) == 0) {
            fd_clear(&theirs);
            collect(output, &said, deadline);
            spawn_kill(&child);
            spawn_await(&child, clock_deadline_after_ms(VERSION_MS));
            spawn_done(&child);
        }
    }
    free(argv[0]);
    free(argv[1]);
    return word_with_digit(said.size == 0 ? "" : said.data);
}
