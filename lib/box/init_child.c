/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: fork and exec of the box's program.
 * Owns: nothing.
 * Threads: one.
 * May include: base, init.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/fd.h"
#include "lib/box/init.h"

#define EXIT_NOT_FOUND 127
#define EXIT_NOT_STARTED 126
#define NAME_SHOWN_MAX ((size_t)200)
/* Behind the first character of a pin that is not looked at. */
#define UNPINNED " 0 0 /"
/* In the place of an errno: the connection ended before START. */
#define NO_START (-1)

/* "kernd: cannot start 'name': reason", in one write so that it stays one line. */
static void tell(const char *what, const char *name, int reason)
{
    const char *text = err_errno_text(reason);
    const struct {
        const char *text;
        size_t size;
    } parts[] = {
        { "kernd: ", 7 }, { what, strlen(what) },
        { " '", 2 },      { name, strnlen(name, NAME_SHOWN_MAX) },
        { "': ", 3 },     { text, strlen(text) },
        { "\n", 1 },
    };
    char line[sizeof("kernd: ") + NAME_SHOWN_MAX + 128];
    size_t size = 0;
    ssize_t ignored = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (size + parts[i].size <= sizeof(line)) {
            memcpy(line + size, parts[i].text, parts[i].size);
            size += parts[i].size;
        }
    }
    ignored = write(STDERR_FILENO, line, size);
    (void)ignored;
}

static void fail(int report, int reason, int exit_code) __attribute__((noreturn));
static void fail(int report, int reason, int exit_code)
{
    (void)fd_write_full(report, &reason, sizeof(reason));
    _exit(exit_code);
}

/* NULL, or the path that is not what it should be: see struct box_pin. */
static const char *find_unpinned(char *const *pins)
{
    char wanted[64];
    struct stat status;

    for (; *pins != NULL; pins++) {
        const char *path = strchr(*pins, '/');

        if (path != NULL && strncmp(*pins + 1, UNPINNED, strlen(UNPINNED)) == 0) {
            continue;
        }

        if (path == NULL || stat(path, &status) < 0) {
            return *pins;
        }
        (void)snprintf(wanted, sizeof(wanted), INIT_WIRE_PIN, (*pins)[0], (uint64_t)status.st_dev,
                       (uint64_t)status.st_ino);
        if (strlen(wanted) != (size_t)(path - *pins) ||
            strncmp(wanted, *pins, strlen(wanted)) != 0) {
            return path;
        }
    }
    return NULL;
}

/* For an interpreter that can't connect before it runs an event loop. 0, or the reason. */
static int connect_driver(int number)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = INIT_WIRE_DRIVER_SOCKET };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int reason = 0;

    /* The copy outlives exec: it has no O_CLOEXEC (dup(2)). */
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        dup2(fd, number) < 0) {
        reason = errno;
    }
    fd_close(fd);
    return reason;
}

/* Ends the process where the box is not what kernd means it to be, or can't be made so. */
static void close_walls(const struct init_program *program, int ruleset, int report)
{
    const char *unpinned = find_unpinned(program->pins);
    int reason = 0;

    init_state_limits(&program->limits);
    if (unpinned != NULL) {
        tell("cannot start with", unpinned, ESTALE);
        fail(report, ESTALE, EXIT_NOT_STARTED);
    }
    if (ruleset >= 0 && init_landlock_enter(ruleset, program->pins) < 0) {
        reason = errno;
        tell("cannot confine", program->argv[0], reason);
        fail(report, reason, EXIT_NOT_STARTED);
    }
}

static void run_program(const struct init_program *program, int report) __attribute__((noreturn));
static void run_program(const struct init_program *program, int report)
{
    int reason = 0;

    if (chdir(program->cwd) < 0) {
        reason = errno;
        tell("cannot start in", program->cwd, reason);
        fail(report, reason, EXIT_NOT_STARTED);
    }
    if (program->limits.driver_fd != 0) {
        reason = connect_driver((int)program->limits.driver_fd);
    }
    if (reason != 0) {
        tell("cannot connect", program->argv[0], reason);
        fail(report, reason, EXIT_NOT_STARTED);
    }
    /* execvpe looks for the program in the caller's own PATH, not in the one it passes on. */
    environ = program->environment;
    (void)execvpe(program->argv[0], program->argv, program->environment);
    reason = errno;
    tell("cannot start", program->argv[0], reason);
    fail(report, reason, reason == ENOENT || reason == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_STARTED);
}

static void run_child(int connection, int ruleset, bool in_image, int report)
    __attribute__((noreturn));
static void run_child(int connection, int ruleset, bool in_image, int report)
{
    struct init_program program;

    init_state_process();
    init_state_signals();
    if (!init_receive_start(connection, &program)) {
        fail(report, NO_START, EXIT_NOT_STARTED);
    }
    if (in_image) {
        program.environment = init_receive_merge(environ, program.environment);
    }
    close_walls(&program, ruleset, report);
    run_program(&program, report);
}

pid_t init_child_fork(int connection, int ruleset, bool in_image, int *ret_report)
{
    int report_read = -1;
    int report_write = -1;
    pid_t pid = -1;

    if (fd_pipe(&report_read, &report_write) < 0) {
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        run_child(connection, ruleset, in_image, report_write);
    }
    fd_close(report_write);
    *ret_report = report_read;
    return pid;
}

bool init_child_await(int report, int *ret_errno)
{
    int reason = 0;

    /* The write end closes by itself at exec: nothing to read means success. */
    if (fd_read_full(report, &reason, sizeof(reason)) < 0) {
        reason = 0;
    }
    fd_close(report);
    *ret_errno = reason;
    return reason != NO_START;
}
