/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: connect to the server's socket; start the server where none answers.
 * Owns: nothing that lasts: the server is on its own.
 * Threads: one.
 * May include: server, lib/base.
 */
#include "server/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "server/cli.h"
#include "server/dial.h"
#include "server/dirs.h"
#include "server/places.h"

#define START_LIMIT_S 20.0
#define TRY_EVERY_MS 20
#define READY_MAX ((size_t)8192)
#define TOKEN_FILE_MAX 4096

/* ---- where ---- */

/* Root's server becomes another account, which has places of its own. */
static int find_places(struct connect *way, struct config *config, struct err *err)
{
    const char *account = NULL;

    if (geteuid() == 0 && !config->allow_root) {
        account = config->user == NULL ? "nobody" : config->user;
    }
    if (places_resolve(config, account, err) < 0) {
        return -1;
    }
    way->socket = alloc_printf("%s/kernd.sock", config->runtime_dir);
    for (size_t i = 0; i < config->listens.count; i++) {
        if (text_starts_with(config->listens.items[i], "unix:")) {
            free(way->socket);
            way->socket = alloc_text(config->listens.items[i] + strlen("unix:"));
        }
    }
    way->state_dir = alloc_text(config->state_dir);
    way->runtime_dir = alloc_text(config->runtime_dir);
    way->token = alloc_printf("%s/token", config->runtime_dir);
    way->log = alloc_printf("%s/kernd.log", account != NULL ? "/var/log" : config->state_dir);
    return account != NULL ? 0 : dirs_make_private(config->state_dir, geteuid(), getegid(), err);
}

int connect_find(struct connect *way, int count, char *const *options, struct err *err)
{
    enum cli_command command = CLI_HELP;
    struct config config;
    int result;

    *way = (struct connect){ .socket = NULL };
    strv_add_all(&way->serve, "kernd", "serve", "--on-demand", NULL);
    for (int i = 0; i < count; i++) {
        strv_add(&way->serve, options[i]);
    }
    config_init(&config);
    result = cli_parse((int)way->serve.count - 1, way->serve.items + 1, &config, &command, err);
    if (result == 0 && command != CLI_SERVE) {
        result = err_set(err, ERR_BAD_VALUE, 0, "these are not options of kernd serve");
        (void)err_remedy(err, "see: kernd help");
    }
    if (result == 0) {
        way->idle_exit_given = config.idle_exit_s >= 0;
        result = find_places(way, &config, err);
    }
    config_done(&config);
    return result;
}

void connect_at(struct connect *way, const char *socket)
{
    *way = (struct connect){ .socket = alloc_text(socket) };
}

void connect_done(struct connect *way)
{
    free(way->socket);
    free(way->url);
    free(way->token);
    free(way->state_dir);
    free(way->runtime_dir);
    free(way->log);
    strv_done(&way->serve);
    *way = (struct connect){ .socket = NULL };
}

/* ---- connecting ---- */

/* The value behind NAME in the line "NAME=value NAME=value ..."; fresh, NULL: there is none. */
static char *value_of(const char *line, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = line; at != NULL && *at != '\0'; at = strchr(at, ' ')) {
        at += strspn(at, " ");
        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            return alloc_copy(at + length + 1, strcspn(at + length + 1, " \n"));
        }
    }
    return NULL;
}

static int dial_url(const char *url)
{
    CLEANUP_FREE char *host = NULL;
    CLEANUP_FREE char *port = NULL;
    struct err err = ERR_INIT;

    return dial_read_url(url, &host, &port, &err) == 0 ? dial_tcp(host, port, &err) : -1;
}

/*
 * By what the server wrote when it was ready (ready.h). It may have crashed since: only who holds
 * the lock is there.
 */
static int try_elsewhere(struct connect *way)
{
    CLEANUP_FREE char *path = alloc_printf("%s/ready", way->runtime_dir);
    CLEANUP_FREE char *line = fd_read_file(path, READY_MAX, NULL);
    CLEANUP_FREE char *socket = line == NULL ? NULL : value_of(line, "socket");
    CLEANUP_FREE char *url = line == NULL ? NULL : value_of(line, "url");
    int fd;

    if ((socket == NULL && url == NULL) || text_equal(socket, way->socket) ||
        dirs_lock_owner(way->state_dir) <= 0) {
        return -1;
    }
    fd = socket != NULL ? dial_unix(socket) : dial_url(url);
    if (fd >= 0) {
        char **found = socket != NULL ? &way->socket : &way->url;

        free(*found);
        *found = socket != NULL ? CLEANUP_TAKE(socket) : CLEANUP_TAKE(url);
    }
    return fd;
}

int connect_try(struct connect *way)
{
    int fd = way->url == NULL ? -1 : dial_url(way->url);
    int failed;

    if (fd >= 0) {
        return fd;
    }
    free(way->url);
    way->url = NULL;
    fd = dial_unix(way->socket);
    failed = errno;
    if (fd < 0 && way->runtime_dir != NULL && (failed == ENOENT || failed == ECONNREFUSED)) {
        fd = try_elsewhere(way);
        errno = failed;
    }
    return fd;
}

/* ---- who asks ---- */

char *connect_read_token(const char *path, struct err *err)
{
    char *token = fd_read_file(path, TOKEN_FILE_MAX, NULL);

    if (token == NULL) {
        (void)err_set(err, ERR_IO, errno, "the token file %.150s: %s", path, err_errno_text(errno));
        (void)err_remedy(err, "kernd serve tells its token file when it starts");
        return NULL;
    }
    token[strcspn(token, "\r\n")] = '\0';
    return token;
}

char *connect_token(const struct connect *way, struct err *err)
{
    return way->url == NULL ? NULL : connect_read_token(way->token, err);
}

int connect_authorize(const struct connect *way, struct buf *headers, struct err *err)
{
    struct err failed = ERR_INIT;
    char *token = connect_token(way, &failed);

    if (token != NULL) {
        (void)buf_printf(headers, "Authorization: Bearer %s\r\n", token);
        explicit_bzero(token, strlen(token));
        free(token);
    } else if (failed.code != ERR_NONE) {
        *err = failed;
        return -1;
    }
    return 0;
}

/* ---- starting ---- */

/* Of a server that was started. */
struct end {
    bool has_ended;
    int status; /* waitpid(2) */
};

static int start(const struct connect *way, pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t all;
    sigset_t none;
    int failed;

    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attributes);
    /* What a client blocks or ignores is no business of the server. */
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, way->log,
                                           O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    (void)posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    failed = posix_spawn(ret_pid, "/proc/self/exe", &files, &attributes, strv_argv(&way->serve),
                         environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    return failed;
}

/*
 * Of clients that start servers at the same time all but one have one too many: it waits for the
 * lock, in case its owner was just leaving, and would take over once that one is stopped. Who could
 * connect knows better: a server has the lock before anybody can, and does not leave before it has
 * looked who did.
 */
static void end_if_waiting(const struct connect *way, pid_t pid)
{
    if (dirs_lock_owner(way->state_dir) != pid) {
        (void)kill(pid, SIGTERM);
    }
}

/* A server that fails at once may have found another one there already. */
static int wait_for_server(struct connect *way, pid_t pid, int64_t deadline, struct end *end)
{
    int fd = -1;

    while (fd < 0 && !clock_passed(deadline)) {
        (void)poll(NULL, 0, TRY_EVERY_MS);
        fd = connect_try(way);
        if (fd < 0 && end->has_ended) {
            break;
        }
        end->has_ended = end->has_ended || waitpid(pid, &end->status, WNOHANG) == pid;
    }
    return fd;
}

/*
 * A server that ended well has served others and left before this client looked: it takes another
 * one.
 */
static int start_and_wait(struct connect *way, struct err *err)
{
    const int64_t deadline = clock_deadline_after_s(START_LIMIT_S);
    struct end end;
    int fd = -1;

    do {
        pid_t pid = 0;
        const int failed = start(way, &pid);

        if (failed != 0) {
            return err_set(err, ERR_IO, failed, "the kernd server cannot be started: %s",
                           err_errno_text(failed));
        }
        end = (struct end){ .has_ended = false };
        fd = wait_for_server(way, pid, deadline, &end);
        if (fd >= 0 && !end.has_ended) {
            end_if_waiting(way, pid);
        }
    } while (fd < 0 && end.has_ended && end.status == 0 && !clock_passed(deadline));
    if (fd < 0) {
        (void)err_set(err, ERR_IO, 0, "the kernd server could not be started");
        (void)err_remedy(err, "its log tells why: %.200s", way->log);
    }
    return fd;
}

int connect_open(struct connect *way, struct err *err)
{
    const int fd = connect_try(way);

    if (fd >= 0) {
        return fd;
    }
    if (way->log == NULL || (errno != ENOENT && errno != ECONNREFUSED)) {
        (void)err_set(err, ERR_IO, errno, "no connection to %.150s: %s", way->socket,
                      err_errno_text(errno));
        return err_remedy(err, "start a server there: kernd serve --listen unix:%.150s",
                          way->socket);
    }
    while (waitpid(-1, NULL, WNOHANG) > 0) {
        /* one that was started before has ended */
    }
    return start_and_wait(way, err);
}
