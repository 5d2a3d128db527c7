/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make the process of the box's program.
 * Owns: nothing.
 * Threads: one.
 * May include: base, init.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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
/* Enough for execvpe(3), which puts a path together there, and with glibc for a program that the
 * kernel can't execute a copy of argv. Pages that nobody uses are not there. */
#define STACK_SIZE ((size_t)65536)

/* What the child knows of its task, and where it leaves what kept it from it. */
struct birth {
    const struct init_program *program;
    int ruleset;
    int reason; /* errno, 0 once it has executed the program */
};

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

static void fail(struct birth *birth, int reason, int exit_code) __attribute__((noreturn));
static void fail(struct birth *birth, int reason, int exit_code)
{
    birth->reason = reason;
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
static void close_walls(struct birth *birth)
{
    const struct init_program *program = birth->program;
    const char *unpinned = find_unpinned(program->pins);
    int reason = 0;

    init_state_limits(&program->limits);
    if (unpinned != NULL) {
        tell("cannot start with", unpinned, ESTALE);
        fail(birth, ESTALE, EXIT_NOT_STARTED);
    }
    if (birth->ruleset >= 0 && init_landlock_enter(birth->ruleset, program->pins) < 0) {
        reason = errno;
        tell("cannot confine", program->argv[0], reason);
        fail(birth, reason, EXIT_NOT_STARTED);
    }
}

static void run_program(struct birth *birth) __attribute__((noreturn));
static void run_program(struct birth *birth)
{
    const struct init_program *program = birth->program;
    int reason = 0;

    if (chdir(program->cwd) < 0) {
        reason = errno;
        tell("cannot start in", program->cwd, reason);
        fail(birth, reason, EXIT_NOT_STARTED);
    }
    if (program->limits.driver_fd != 0) {
        reason = connect_driver((int)program->limits.driver_fd);
    }
    if (reason != 0) {
        tell("cannot connect", program->argv[0], reason);
        fail(birth, reason, EXIT_NOT_STARTED);
    }
    /* execvpe looks for the program in the caller's own PATH, not in the one it passes on. */
    environ = program->environment;
    (void)execvpe(program->argv[0], program->argv, program->environment);
    reason = errno;
    tell("cannot start", program->argv[0], reason);
    fail(birth, reason, reason == ENOENT || reason == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_STARTED);
}

/* In the memory of PID 1, which waits: session, masks, signals, limits and directory are its own.
 */
static int run_child(void *context)
{
    struct birth *birth = context;

    init_state_process();
    init_state_signals();
    close_walls(birth);
    run_program(birth);
}

/* A multiple of 16 bytes, as its end is where the stack begins. */
static size_t stack_size(const struct init_program *program)
{
    size_t count = 0;

    while (program->argv[count] != NULL) {
        count++;
    }
    return STACK_SIZE + (count + 2) / 2 * 2 * sizeof(char *);
}

pid_t init_child_start(const struct init_program *program, int ruleset, int *ret_errno)
{
    const size_t size = stack_size(program);
    struct birth birth = { .program = program, .ruleset = ruleset };
    char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    pid_t pid = -1;

    if (stack != MAP_FAILED) {
        pid = clone(run_child, stack + size, CLONE_VM | CLONE_VFORK | SIGCHLD, &birth);
    }
    if (pid < 0) {
        birth.reason = errno;
        tell("cannot start", program->argv[0], birth.reason);
    }
    *ret_errno = birth.reason;
    return pid;
}
