/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: kernd-shell, the driver of bash kernels: speaks the wire (wire.h) for a shell that can not.
 * Owns: the connection to kernd, the shell (driver_shell.sh), the files of the running cell.
 * Threads: one.
 * May include: base, shell_start.
 *
 * A static program of its own in the box, started by kernd-init. It runs one shell at a time: when
 * code ends the shell in good order, the shell has saved what it had, and the next one starts with
 * that. A shell that dies otherwise takes the kernel along, with its own wait status.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "lib/cell/shell_start.h"

#define SOCKET "/run/kernd/driver.sock"
#define SCRIPT "/run/kernd-lib/driver_shell.sh"
#define FRAME_MAX ((uint32_t)256 * 1024 * 1024)
/* For the exit trap of a shell whose kernel is closed. */
#define POLITE_MS 100
#define INTERRUPTED 130
/*
 * A cell that goes on so long after its interrupt gets it once more, as a person would press Ctrl-C
 * again, before kernd loses patience (KERNEL_GRACE_MS). A shell that has just decided to start a
 * command waits for that one, which was not there to be interrupted.
 */
#define REPEAT_MS 700

enum type { CELL = 1, INTERRUPT = 2, READY = 17, END = 19 };
enum field { FIELD_CODE = 2, FIELD_STDIN = 3 };

struct shell {
    const char *script;
    int connection;
    int children; /* signalfd for SIGCHLD */
    char dir[32];
    char state[64];
    pid_t pid;
    int records; /* to the shell */
    int status;  /* from the shell */
    char line[64];
    size_t line_size;
    bool running;
    bool interrupted; /* an interrupt was sent into the running cell */
    int64_t repeat;   /* when it is sent again, CLOCK_NEVER: not */
    uint32_t number;
    int last_code; /* of the shell that ended: the next one's first $? */
};

static uint32_t get_u32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void put_u32(unsigned char *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        bytes[i] = (unsigned char)(value >> (24 - 8 * i));
    }
}

static bool send_frame(const struct shell *shell, enum type type, const void *payload, size_t size)
{
    unsigned char frame[128] = { (unsigned char)type };

    put_u32(frame + 1, (uint32_t)size);
    memcpy(frame + 5, payload, size);
    return fd_write_full(shell->connection, frame, 5 + size) == 0;
}

static bool send_ready(const struct shell *shell, const char *version)
{
    char payload[64];
    int size = snprintf(payload, sizeof(payload), "\1bash %.40s", version);

    return send_frame(shell, READY, payload, (size_t)size);
}

static bool send_end(struct shell *shell, int exit_code)
{
    unsigned char payload[9];

    put_u32(payload, shell->number);
    put_u32(payload + 4, (uint32_t)exit_code & 0xff);
    payload[8] = shell->interrupted && exit_code == INTERRUPTED;
    shell->running = false;
    shell->interrupted = false;
    shell->repeat = CLOCK_NEVER;
    return send_frame(shell, END, payload, sizeof(payload));
}

static int connect_to_kernd(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        fd_clear(&fd);
    }
    return fd;
}

/* SIGINT is for the cell, and only when kernd says for which: it comes as a frame too. */
static int block_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGPIPE);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) {
        return -1;
    }
    (void)sigdelset(&set, SIGINT);
    (void)sigdelset(&set, SIGPIPE);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* 0, or an errno value. */
static int start_shell(struct shell *shell)
{
    CLEANUP_FD int records = -1;
    CLEANUP_FD int status = -1;

    fd_clear(&shell->records);
    fd_clear(&shell->status);
    shell->line_size = 0;
    if (fd_pipe(&records, &shell->records) < 0 || fd_pipe(&shell->status, &status) < 0) {
        return errno;
    }
    return shell_start_bash(&(struct shell_start){ .script = shell->script,
                                                   .state = shell->state,
                                                   .last_code = shell->last_code,
                                                   .records = records,
                                                   .status = status },
                            &shell->pid);
}

static const char *path_of(const struct shell *shell, const char *name, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/%s", shell->dir, name);
    return path;
}

static bool write_file(const char *path, const void *data, size_t size)
{
    CLEANUP_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    return fd >= 0 && fd_write_full(fd, data, size) == 0;
}

/* Writes the cell's files and tells the shell of them. */
static bool begin_cell(struct shell *shell, const unsigned char *payload, size_t size)
{
    char name[32];
    char code[64];
    char input[64] = "/dev/null";

    shell->number = get_u32(payload + 6);
    (void)snprintf(name, sizeof(name), "cell-%u", shell->number);
    (void)path_of(shell, name, code, sizeof(code));
    for (size_t at = 10; at + 5 <= size;) {
        size_t length = get_u32(payload + at + 1);
        const unsigned char *data = payload + at + 5;
        bool written = true;

        if (payload[at] == FIELD_CODE) {
            written = write_file(code, data, length);
        } else if (payload[at] == FIELD_STDIN) {
            written = write_file(path_of(shell, "input", input, sizeof(input)), data, length);
        }
        if (!written) {
            return false;
        }
        at += 5 + length;
    }
    shell->running = true;
    return fd_write_full(shell->records, input, strlen(input) + 1) == 0 &&
           fd_write_full(shell->records, code, strlen(code) + 1) == 0;
}

static void remove_cell_files(const struct shell *shell)
{
    char name[32];
    char path[64];

    (void)snprintf(name, sizeof(name), "cell-%u", shell->number);
    (void)unlink(path_of(shell, name, path, sizeof(path)));
    (void)unlink(path_of(shell, "input", path, sizeof(path)));
}

/* A frame of kernd. False: it went away. */
static bool obey(struct shell *shell)
{
    unsigned char header[5];
    CLEANUP_FREE unsigned char *payload = NULL;
    uint32_t size = 0;

    if (fd_read_full(shell->connection, header, sizeof(header)) < 0 ||
        (size = get_u32(header + 1)) > FRAME_MAX) {
        return false;
    }
    payload = alloc_zero(size + 1, 1);
    if (fd_read_full(shell->connection, payload, size) < 0) {
        return false;
    }
    if (header[0] == CELL && size >= 10) {
        return begin_cell(shell, payload, size);
    }
    if (header[0] == INTERRUPT && size == 4 && shell->running &&
        get_u32(payload) == shell->number) {
        shell->interrupted = true;
        shell->repeat = clock_deadline_after_ms(REPEAT_MS);
        (void)kill(-shell->pid, SIGINT);
    }
    return true;
}

static void repeat_interrupt(struct shell *shell)
{
    if (clock_passed(shell->repeat)) {
        shell->repeat = CLOCK_NEVER;
        (void)kill(-shell->pid, SIGINT);
    }
}

/* A line of the shell: its word that it is ready, or an exit code. */
static bool take_line(struct shell *shell)
{
    const char *line = shell->line;
    uint64_t exit_code = 0;

    if (strncmp(line, "ready ", 6) == 0) {
        return send_ready(shell, line + 6);
    }
    remove_cell_files(shell);
    if (text_parse_u64(line, &exit_code) < 0) {
        return false;
    }
    return !shell->running || send_end(shell, (int)(exit_code & 0xff));
}

static bool hear(struct shell *shell)
{
    char byte = 0;

    if (read(shell->status, &byte, 1) != 1) {
        fd_clear(&shell->status); /* its death comes as a signal */
        return true;
    }
    if (byte != '\n' && shell->line_size < sizeof(shell->line) - 1) {
        shell->line[shell->line_size++] = byte;
        return true;
    }
    shell->line[shell->line_size] = '\0';
    shell->line_size = 0;
    return take_line(shell);
}

_Noreturn static void die_alike(int wait_status)
{
    sigset_t set;

    if (WIFSIGNALED(wait_status)) {
        (void)sigfillset(&set);
        (void)raise(WTERMSIG(wait_status));
        (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    }
    _exit(WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status));
}

/* The shell is dead. If it saved what it had, the next one goes on; else this is the end. */
static bool bury(struct shell *shell, int wait_status)
{
    struct pollfd last = { .fd = shell->status, .events = POLLIN };
    char done[64];

    while (last.fd >= 0 && poll(&last, 1, 0) > 0 && hear(shell)) {
        last.fd = shell->status;
    }
    if (!WIFEXITED(wait_status) || unlink(path_of(shell, "state.done", done, sizeof(done))) < 0) {
        die_alike(wait_status);
    }
    remove_cell_files(shell);
    shell->last_code = WEXITSTATUS(wait_status);
    if (shell->running && !send_end(shell, shell->last_code)) {
        return false;
    }
    return start_shell(shell) == 0;
}

static bool look_for_death(struct shell *shell)
{
    struct signalfd_siginfo info;
    int wait_status = 0;
    pid_t pid = 0;

    while (read(shell->children, &info, sizeof(info)) > 0) {
    }
    while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
        if (pid == shell->pid && !bury(shell, wait_status)) {
            return false;
        }
    }
    return true;
}

static void serve(struct shell *shell)
{
    bool going = true;

    while (going) {
        struct pollfd watched[] = {
            { .fd = shell->children, .events = POLLIN },
            { .fd = shell->status, .events = POLLIN },
            { .fd = shell->connection, .events = POLLIN },
        };

        if (poll(watched, 3, clock_poll_ms(shell->repeat, -1)) < 0) {
            continue;
        }
        repeat_interrupt(shell);
        if (watched[1].revents != 0) {
            going = hear(shell);
        } else if (watched[0].revents != 0) {
            going = look_for_death(shell);
        } else if (watched[2].revents != 0) {
            going = obey(shell);
        }
    }
}

/* The end of its input ends a shell that waits for a cell; its exit trap runs. */
static void end_politely(struct shell *shell)
{
    struct pollfd children = { .fd = shell->children, .events = POLLIN };

    fd_clear(&shell->records);
    (void)poll(&children, 1, POLITE_MS);
}

int main(int argc, char **argv)
{
    struct shell shell = {
        .connection = -1,
        .records = -1,
        .status = -1,
        .repeat = CLOCK_NEVER,
        .dir = "/tmp/.kernd-XXXXXX",
    };
    int failed = 0;

    shell.script = argc > 2 ? argv[2] : SCRIPT;
    shell.children = block_signals();
    shell.connection = connect_to_kernd(argc > 1 ? argv[1] : SOCKET);
    if (shell.children < 0 || shell.connection < 0 || mkdtemp(shell.dir) == NULL) {
        return 1;
    }
    (void)path_of(&shell, "state", shell.state, sizeof(shell.state));
    failed = start_shell(&shell);
    if (failed != 0) {
        (void)dprintf(STDERR_FILENO, "kernd: cannot start 'bash'\n");
        return failed == ENOENT ? 127 : 126;
    }
    serve(&shell);
    end_politely(&shell);
    return 0;
}
