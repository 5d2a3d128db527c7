/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: kernd-init, PID 1 of a box: say hello, start the program, attend to it (init_reaper.c).
 * Owns: the connection to kernd; its end, at either side, is the end of the box.
 * Threads: one.
 * May include: base, init.
 */
#include "lib/box/init.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"

#define EXIT_UNBORN 126 /* as of a program that can't be executed */

/* One line for the launcher's stderr, which kernd quotes when a box does not start. */
static int give_up(const char *what)
{
    ssize_t ignored = write(STDERR_FILENO, what, strlen(what));

    (void)ignored;
    return 1;
}

static bool connect_to_kernd(struct init_reaper *init)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = INIT_WIRE_SOCKET };

    init->connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (init->connection < 0 ||
        connect(init->connection, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        (void)give_up("kernd-init: can't reach kernd\n");
        return false;
    }
    return true;
}

/*
 * The program of a box is number 2. A template must have another number than the programs that are
 * forked from it: libraries know by that number that they have to seed themselves anew.
 */
static void skip_a_number(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        _exit(0);
    }
    (void)waitpid(pid, NULL, 0);
}

/* The program's own from here on: its end of file must not wait for this process. */
static void close_streams(void)
{
    fd_close(STDIN_FILENO);
    fd_close(STDOUT_FILENO);
    fd_close(STDERR_FILENO);
}

/* No process was left for the program: it has ended like one that could not be executed. */
static void set_unborn(struct init_reaper *init)
{
    init->ended = true;
    init->wait_status = EXIT_UNBORN << 8; /* wait(2) form */
}

/*
 * Hello, then the program's start. False: no program came. Who is confined by Landlock can mount
 * nothing (landlock(7)): a template is not, and its boxes are.
 */
static bool begin(struct init_reaper *init, bool is_template)
{
    struct init_wire_hello hello = { .version = INIT_WIRE_VERSION };
    struct init_wire_started started = { 0 };
    struct init_program program;
    int ruleset = -1;

    hello.landlock_abi = is_template ? 0 : init_landlock_prepare(init->in_image, &ruleset);
    /* At once, so that kernd wakes for both. */
    if (!connect_to_kernd(init) ||
        !init_send(init->connection, INIT_WIRE_HELLO, &hello, sizeof(hello)) ||
        (init->in_image && !init_receive_streams(init->connection)) ||
        !init_receive_start(init->connection, &program)) {
        return false;
    }
    if (init->in_image) {
        program.environment = init_receive_merge(environ, program.environment);
    }
    init->program = init_child_start(&program, ruleset, &started.start_errno);
    started.at_ns = clock_mono_ns();
    if (init->program < 0) {
        set_unborn(init);
    }
    fd_close(ruleset);
    /* Its output ends with this process, and not before: kernd wakes once, for the report. */
    fd_close(STDIN_FILENO);
    return init_send(init->connection, INIT_WIRE_STARTED, &started, sizeof(started));
}

/*
 * What outlives execve(2) of the interpreter that this process was a fork of: signals that it
 * ignores, and its file mask. PID 1 has neither in a box that was booted.
 */
static void forget_interpreter(void)
{
    static const int ignored[] = { SIGINT, SIGPIPE, SIGXFSZ };
    const struct sigaction action = { .sa_handler = SIG_DFL };

    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
        (void)sigaction(ignored[i], &action, NULL);
    }
    (void)umask(S_IRWXG | S_IRWXO);
}

/* The program is a process already, which waits for its code: no START comes. */
static bool begin_forked(struct init_reaper *init, char **argv)
{
    const struct init_wire_started started = { .at_ns = clock_mono_ns() };
    struct init_wire_hello hello = { .version = INIT_WIRE_VERSION };
    uint64_t program = 0;
    uint64_t landlock_abi = 0;

    if (text_parse_u64(argv[2], &program) < 0 || text_parse_u64(argv[3], &landlock_abi) < 0 ||
        !connect_to_kernd(init)) {
        return false;
    }
    hello.outside = strcmp(argv[1], INIT_WIRE_OUTSIDE) == 0 ? 1 : 0;
    hello.landlock_abi = (uint32_t)landlock_abi;
    init->program = (pid_t)program;
    forget_interpreter();
    close_streams();
    return init_send(init->connection, INIT_WIRE_HELLO, &hello, sizeof(hello)) &&
           init_send(init->connection, INIT_WIRE_STARTED, &started, sizeof(started));
}

/* What is kernd-init here? Its one word tells, see init_wire.h. */
static bool is_called(int argc, char **argv, const char *word)
{
    return argc > 1 && strcmp(argv[1], word) == 0;
}

int main(int argc, char **argv)
{
    const bool is_template = is_called(argc, argv, INIT_WIRE_TEMPLATE);
    struct init_reaper init;

    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {
        return give_up("kernd-init: can't protect itself\n");
    }
    if (!init_reaper_open(&init)) {
        return give_up("kernd-init: can't hear of deaths\n");
    }
    init.in_image = is_called(argc, argv, INIT_WIRE_IN_IMAGE);
    if (is_template) {
        skip_a_number();
    }
    return (argc == 4 ? begin_forked(&init, argv) : begin(&init, is_template)) &&
                   init_reaper_run(&init, is_template)
               ? 0
               : 1;
}
