/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: print the configuration of clients of the Model Context Protocol, or write it into theirs.
 * Owns: nothing that lasts.
 * Threads: main.
 * May include: server, lib/base.
 */
#include "server/mcp_install.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "server/mcp_client.h"

#define EXIT_USAGE 2
#define FILE_MAX ((size_t)4 << 20)
#define TOKEN_SIZE 128
#define BACKUP ".kernd-backup"
#define ENDPOINT "/mcp"
#define TOKEN_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="
#define TOKEN_PREFIX "kernd_"
#define TOKEN_DIGITS 64

struct install {
    const struct mcp_client *client;
    const char *project; /* NULL: the user's own file */
    const char *http;    /* NULL: over a program */
    char *url;           /* of the endpoint there */
    const char *token;   /* NULL: one is found or made */
    const char *workspace;
    bool write;
    struct strv serve; /* options for the bridge, and for who makes a token */
    struct strv command;
    char made[TOKEN_SIZE];
};

static int usage(const char *why)
{
    (void)fprintf(stderr,
                  "kernd mcp install: %s\nusage: kernd mcp install --client NAME [--write] "
                  "[--project DIR] [--workspace DIR[:ro]] [--http URL [--token TOKEN]] "
                  "[options of serve]\nNAME is one of",
                  why);
    for (size_t i = 0; mcp_client_name(i) != NULL; i++) {
        (void)fprintf(stderr, " %s", mcp_client_name(i));
    }
    (void)fputs("\n", stderr);
    return EXIT_USAGE;
}

static int complain(const struct err *err)
{
    (void)fprintf(stderr, "kernd mcp install: %s\n", err->msg);
    if (err->remedy[0] != '\0') {
        (void)fprintf(stderr, "kernd mcp install: %s\n", err->remedy);
    }
    return EXIT_FAILURE;
}

/* ---- the command line ---- */

/* The value of --NAME VALUE or --NAME=VALUE at *at, which moves behind it; NULL: another option. */
static const char *take_value(const char *name, int count, char *const *arguments, int *at)
{
    const char *given = arguments[*at];

    if (given != NULL && strncmp(given, name, strlen(name)) == 0 && given[strlen(name)] == '=') {
        return given + strlen(name) + 1;
    }
    return text_equal(given, name) && *at + 1 < count ? arguments[++*at] : NULL;
}

static int parse(struct install *install, int count, char *const *arguments)
{
    const struct {
        const char *name;
        const char **value;
    } ours[] = { { "--project", &install->project },
                 { "--http", &install->http },
                 { "--token", &install->token },
                 { "--workspace", &install->workspace } };

    for (int at = 0; at < count; at++) {
        const char *value = take_value("--client", count, arguments, &at);
        bool taken = value != NULL || text_equal(arguments[at], "--write");

        if (value != NULL && (install->client = mcp_client_find(value)) == NULL) {
            return usage("it knows no client of that name");
        }
        install->write |= text_equal(arguments[at], "--write");
        for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]) && !taken; i++) {
            value = take_value(ours[i].name, count, arguments, &at);
            taken = value != NULL;
            *ours[i].value = taken ? value : *ours[i].value;
        }
        if (!taken) {
            strv_add(&install->serve, arguments[at]);
        }
    }
    if (install->client == NULL) {
        return usage("it must be told for which client");
    }
    if (install->http == NULL ? install->token != NULL : install->workspace != NULL) {
        return usage(install->http == NULL ? "a token is for --http"
                                           : "a workspace goes over the program, not --http");
    }
    if (install->token != NULL &&
        strspn(install->token, TOKEN_CHARACTERS) != strlen(install->token)) {
        return usage("the token has a character that no token has");
    }
    if (install->http != NULL) {
        install->url = alloc_printf("%s%s", install->http,
                                    text_ends_with(install->http, ENDPOINT) ? "" : ENDPOINT);
    }
    return 0;
}

/* ---- what to configure ---- */

/* The path as it will be found from anywhere, with what stands behind it. */
static char *absolute_workspace(const char *workspace)
{
    const size_t length = strlen(workspace);
    const bool readonly = text_ends_with(workspace, ":ro");
    CLEANUP_FREE char *path = alloc_copy(workspace, readonly ? length - 3 : length);
    CLEANUP_FREE char *real = realpath(path, NULL);

    return real == NULL ? NULL : alloc_printf("%s%s", real, readonly ? ":ro" : "");
}

static int make_command(struct install *install, struct err *err)
{
    char program[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
    CLEANUP_FREE char *workspace = NULL;

    if (size < 0) {
        return err_set(err, ERR_IO, errno, "the path of this program is not known");
    }
    program[size] = '\0';
    strv_add_all(&install->command, program, "mcp", NULL);
    for (size_t i = 0; i < install->serve.count; i++) {
        strv_add(&install->command, install->serve.items[i]);
    }
    if (install->workspace != NULL) {
        workspace = absolute_workspace(install->workspace);
        if (workspace == NULL) {
            return err_set(err, ERR_BAD_VALUE, errno, "the workspace %.200s is not there",
                           install->workspace);
        }
        strv_add_all(&install->command, "--workspace", workspace, NULL);
    }
    return 0;
}

/* One of ours that the file has already. */
static bool find_token(struct install *install, const struct buf *text)
{
    const char *at = text->data;

    while (at != NULL && (at = strstr(at, TOKEN_PREFIX)) != NULL) {
        const size_t digits = strspn(at + strlen(TOKEN_PREFIX), "0123456789abcdef");

        if (digits == TOKEN_DIGITS) {
            (void)snprintf(install->made, sizeof(install->made), "%.*s",
                           (int)(strlen(TOKEN_PREFIX) + digits), at);
            return true;
        }
        at += strlen(TOKEN_PREFIX);
    }
    return false;
}

/* What `kernd token new` prints, run with its standard output at the other end of the pipe. */
static int run_token_command(struct install *install, int out, struct err *err)
{
    posix_spawn_file_actions_t files;
    struct strv command = { 0 };
    pid_t pid = 0;
    int status = -1;
    int failed;

    strv_add_all(&command, "kernd", "token", "new", "--scope", "run", "--name", "mcp", NULL);
    for (size_t i = 0; i < install->serve.count; i++) {
        strv_add(&command, install->serve.items[i]);
    }
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    failed = posix_spawn(&pid, "/proc/self/exe", &files, NULL, strv_argv(&command), environ);
    (void)posix_spawn_file_actions_destroy(&files);
    strv_done(&command);
    if (failed != 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        return err_set(err, ERR_IO, failed, "no token could be made");
    }
    return 0;
}

static int make_token(struct install *install, struct err *err)
{
    int ends[2] = { -1, -1 };
    int result = -1;
    ssize_t size;

    /* A line fits into a pipe that nobody reads yet. */
    if (pipe2(ends, O_CLOEXEC) == 0 && run_token_command(install, ends[1], err) == 0) {
        size = read(ends[0], install->made, sizeof(install->made) - 1);
        if (size > 0) {
            install->made[size] = '\0';
            install->made[strcspn(install->made, "\n")] = '\0';
            result = 0;
        }
    }
    fd_clear(&ends[0]);
    fd_clear(&ends[1]);
    return result < 0 && err->code == ERR_NONE ? err_set(err, ERR_IO, errno, "no token was made")
                                               : result;
}

/* ---- the file ---- */

static int load(const char *path, struct buf *text, struct err *err)
{
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT) {
        return 0;
    }
    if (fd < 0 || fd_read_to_end(fd, text, err) < 0) {
        return err_set(err, ERR_IO, errno, "%.300s: %s", path, err_errno_text(errno));
    }
    return 0;
}

static void make_parents(const char *path)
{
    CLEANUP_FREE char *folder = alloc_text(path);

    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(folder, 0755);
        *slash = '/';
    }
}

/* A link is followed: people keep such files elsewhere. Tokens make a new file private. */
static int store(const struct install *install, const char *path, const struct buf *old,
                 const struct buf *text, struct err *err)
{
    CLEANUP_FREE char *real = realpath(path, NULL);
    const char *target = real != NULL ? real : path;
    CLEANUP_FREE char *backup = alloc_printf("%s" BACKUP, target);
    mode_t mode = install->url != NULL ? 0600 : 0644;
    struct stat status;

    make_parents(target);
    if (real != NULL && stat(real, &status) == 0) {
        mode = status.st_mode & 0777;
    }
    if ((real != NULL &&
         fd_write_file(backup, old->data == NULL ? "" : old->data, old->size, mode) < 0) ||
        fd_write_file(target, text->data, text->size, mode) < 0) {
        return err_set(err, ERR_IO, errno, "%.300s can't be written: %s", target,
                       err_errno_text(errno));
    }
    (void)fprintf(stderr, "wrote %s%s%s\n", target, real != NULL ? "; as it was: " : "",
                  real != NULL ? backup : "");
    return 0;
}

static int show(const struct install *install, const struct buf *text)
{
    (void)fprintf(stderr, "For %s:\n", mcp_client_where(install->client));
    return fwrite(text->data, 1, text->size, stdout) == text->size && fflush(stdout) == 0 ? 0 : -1;
}

static int work(struct install *install, struct err *err)
{
    CLEANUP_FREE char *path = mcp_client_file(install->client, install->project);
    CLEANUP_BUF struct buf old = BUF_INIT(FILE_MAX);
    CLEANUP_BUF struct buf text = BUF_INIT(FILE_MAX * 2);
    struct mcp_client_way way = { .command = &install->command, .url = install->url };

    if (install->write && path == NULL) {
        return err_set(err, ERR_IO, 0, "HOME is not set: where the file belongs is not known");
    }
    if ((install->write && load(path, &old, err) < 0) || make_command(install, err) < 0) {
        return -1;
    }
    if (install->url != NULL && install->token == NULL && !find_token(install, &old) &&
        make_token(install, err) < 0) {
        return -1;
    }
    way.token = install->token != NULL ? install->token : install->made;
    if (mcp_client_merge(install->client, &way, &old, &text, err) < 0) {
        (void)err_prefix(err, "%.200s is left as it is", path);
        return err_remedy(err, "mend it, or add by hand what the command prints without --write");
    }
    if (!install->write) {
        return show(install, &text);
    }
    if (old.size == text.size && memcmp(old.data, text.data, text.size) == 0) {
        (void)fprintf(stderr, "%s has it already\n", path);
        return 0;
    }
    return store(install, path, &old, &text, err);
}

int mcp_install_main(int count, char *const *arguments)
{
    struct install install = { .client = NULL };
    struct err err = ERR_INIT;
    int status = parse(&install, count, arguments);

    if (status == 0 && work(&install, &err) < 0) {
        status = complain(&err);
    }
    free(install.url);
    strv_done(&install.serve);
    strv_done(&install.command);
    return status;
}
