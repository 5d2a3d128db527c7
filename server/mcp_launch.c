/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: connect to the server's socket; start the server where none answers.
 * Owns: nothing that lasts: the server is on its own.
 * Threads: one.
 * May include: server, lib/base.
 */
#include "server/mcp_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "server/cli.h"
#include "server/dirs.h"
#include "server/places.h"

#define START_LIMIT_S 20.0
#define TRY_EVERY_MS 20

/* ---- where ---- */

/* Root's server becomes another account, which has places of its own. */
static int find_places(struct mcp_launch *launch, struct config *config, struct err *err)
{
    const char *account = NULL;

    if (geteuid() == 0 && !config->allow_root) {
        account = config->user == NULL ? "nobody" : config->user;
    }
    if (places_resolve(config, account, err) < 0) {
        return -1;
    }
    launch->socket = alloc_printf("%s/kernd.sock", config->runtime_dir);
    for (size_t i = 0; i < config->listens.count; i++) {
        if (text_starts_with(config->listens.items[i], "unix:")) {
            free(launch->socket);
            launch->socket = alloc_text(config->listens.items[i] + strlen("unix:"));
        }
    }
    launch->log =
        alloc_printf("%s/kernd-mcp.log", account != NULL ? "/var/log" : config->state_dir);
    return account != NULL ? 0 : dirs_make_private(config->state_dir, geteuid(), getegid(), err);
}

static int read_options(struct mcp_launch *launch, int count, char *const *arguments,
                        struct err *err)
{
    enum cli_command command = CLI_HELP;
    struct config config;
    int result;

    strv_add_all(&launch->serve, "kernd", "serve", NULL);
    for (int i = 0; i < count; i++) {
        strv_add(&launch->serve, arguments[i]);
    }
    config_init(&config);
    result =
        cli_parse((int)launch->serve.count - 1, launch->serve.items + 1, &config, &command, err);
    if (result == 0 && command != CLI_SERVE) {
        result = err_set(err, ERR_BAD_VALUE, 0,
                         "usage: kernd mcp [--socket PATH | options of "
                         "serve], or kernd mcp install --client NAME");
        (void)err_remedy(err, "see: kernd help");
    }
    if (result == 0) {
        result = find_places(launch, &config, err);
    }
    config_done(&config);
    return result;
}

int mcp_launch_open(struct mcp_launch *launch, int count, char *const *arguments, struct err *err)
{
    *launch = (struct mcp_launch){ .socket = NULL };
    if (count == 2 && text_equal(arguments[0], "--socket")) {
        launch->socket = alloc_text(arguments[1]);
        return 0;
    }
    if (read_options(launch, count, arguments, err) < 0) {
        mcp_launch_close(launch);
        return -1;
    }
    return 0;
}

void mcp_launch_close(struct mcp_launch *launch)
{
    free(launch->socket);
    free(launch->log);
    strv_done(&launch->serve);
    *launch = (struct mcp_launch){ .socket = NULL };
}

/* ---- connecting ---- */

/* -1 with errno. */
static int try_connect(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd;
    int failed;

    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
        fd_set_nonblocking(fd, true) == 0) {
        return fd;
    }
    failed = errno;
    fd_close(fd);
    errno = failed;
    return -1;
}

/* ---- starting ---- */

static int start(const struct mcp_launch *launch, pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int failed;

    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, launch->log,
                                           O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    (void)posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    failed = posix_spawn(ret_pid, "/proc/self/exe", &files, &attributes, strv_argv(&launch->serve),
                         environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    return failed;
}

/* A server that ends at once may have found another one there already. */
static int wait_for_server(const struct mcp_launch *launch, pid_t pid, struct err *err)
{
    const int64_t deadline = clock_deadline_after_s(START_LIMIT_S);
    bool ended = false;
    int fd = -1;

    while (fd < 0 && !clock_passed(deadline)) {
        (void)poll(NULL, 0, TRY_EVERY_MS);
        fd = try_connect(launch->socket);
        if (fd < 0 && ended) {
            break;
        }
        ended = ended || waitpid(pid, NULL, WNOHANG) == pid;
    }
    return fd >= 0 ? fd
                   : err_set(err, ERR_IO, 0, "the kernd server could not be started: see %s",
                             launch->log);
}

int mcp_launch_connect(struct mcp_launch *launch, struct err *err)
{
    const int fd = try_connect(launch->socket);
    pid_t pid = 0;
    int failed;

    if (fd >= 0) {
        return fd;
    }
    if (launch->log == NULL || (errno != ENOENT && errno != ECONNREFUSED)) {
        return err_set(err, ERR_IO, errno, "no connection to %s: %s", launch->socket,
                       err_errno_text(errno));
    }
    while (waitpid(-1, NULL, WNOHANG) > 0) {
        /* one that was started before has ended */
    }
    failed = start(launch, &pid);
    return failed == 0 ? wait_for_server(launch, pid, err)
                       : err_set(err, ERR_IO, failed, "the kernd server cannot be started: %s",
                                 err_errno_text(failed));
}
