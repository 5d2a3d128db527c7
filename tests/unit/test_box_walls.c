/* SPDX-License-Identifier: Apache-2.0 */
/* What a program in a box cannot reach: descriptors, kernd-init, the driver's socket, the host. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/strv.h"
#include "tests/unit/boxkit.h"

#define RUN(...)                 \
    struct boxkit_result result; \
    (void)state;                 \
    boxkit_run(&(const struct boxkit_call){ __VA_ARGS__ }, &result)

static const char *const list_descriptors[] = {
    "python3", "-c",
    "import os\n"
    "for fd in sorted(os.listdir('/proc/self/fd'), key=int):\n"
    "    try: print(fd, os.readlink('/proc/self/fd/' + fd).split(':')[0])\n"
    "    except OSError: pass\n",
    NULL
};

static void no_descriptor_is_inherited(void **state)
{
    int fds[40];
    int high = -1;

    for (size_t i = 0; i < 40; i++) {
        /* On purpose without O_CLOEXEC, as some library's may be. */
        fds[i] = open("/etc/passwd", O_RDONLY);
        assert_true(fds[i] >= 0);
    }
    high = fcntl(fds[0], F_DUPFD, 2048);
    if (high < 0) {
        high = fcntl(fds[0], F_DUPFD, 900); /* where the limit is 1024 */
    }
    assert_true(high >= 0);
    {
        RUN(.argv = list_descriptors);

        boxkit_assert_exit(&result, 0);
        assert_string_equal(boxkit_out(&result), "0 pipe\n1 pipe\n2 pipe\n");
        boxkit_done(&result);
    }
    (void)close(high);
    for (size_t i = 0; i < 40; i++) {
        (void)close(fds[i]);
    }
}

static void the_first_process_is_a_closed_book(void **state)
{
    RUN(.script = "cd /proc/1; for f in fd/0 environ maps mem root cwd exe stack syscall; do "
                  "{ cat $f || readlink $f; } >/dev/null 2>&1 && echo read $f; done;"
                  "ls fd 2>/dev/null; kill -KILL 1; kill -STOP 1; kill -TERM 1; echo alive");

    boxkit_assert_exit(&result, 0);
    assert_string_equal(boxkit_out(&result), "alive\n");
    boxkit_done(&result);
}

static void the_programs_own_process_is_open_to_it(void **state)
{
    /* The control of the test above: what is refused there works here. */
    RUN(.script = "cd /proc/$$; for f in environ maps; do cat $f >/dev/null && echo read $f; done; "
                  "readlink exe; :");

    boxkit_assert_exit(&result, 0);
    assert_string_equal(boxkit_out(&result), "read environ\nread maps\n/usr/bin/bash\n");
    boxkit_done(&result);
}

#ifdef __x86_64__
/* Makes one system call by number through libc's syscall(2) wrapper and prints its errno. */
static void call_in_box(const char *arguments, struct boxkit_result *result)
{
    char code[512];
    const char *const argv[] = { "python3", "-c", code, NULL };

    (void)snprintf(code, sizeof(code),
                   "import ctypes\n"
                   "c = ctypes.CDLL(None, use_errno=True)\n"
                   "r = c.syscall(%s)\n"
                   "print(ctypes.get_errno() if r < 0 else 0)\n",
                   arguments);
    boxkit_run(&(const struct boxkit_call){ .argv = argv }, result);
}

static void assert_call_fails(const char *arguments, int error)
{
    struct boxkit_result result;
    char expected[16];

    call_in_box(arguments, &result);
    (void)snprintf(expected, sizeof(expected), "%d\n", error);
    if (result.stop != BOX_STOP_EXITED || strcmp(boxkit_out(&result), expected) != 0) {
        fail_msg("syscall(%s): %s%s", arguments, boxkit_out(&result), boxkit_err(&result));
    }
    boxkit_done(&result);
}

static void assert_call_kills(const char *arguments)
{
    struct boxkit_result result;

    call_in_box(arguments, &result);
    assert_int_equal(result.stop, BOX_STOP_EXITED);
    if (!result.outcome.escape_blocked || WTERMSIG(result.outcome.wait_status) != SIGSYS) {
        fail_msg("syscall(%s): %s%s", arguments, boxkit_out(&result), boxkit_err(&result));
    }
    assert_true(result.outcome.evidence[0] != '\0');
    boxkit_done(&result);
}

static void escape_calls_kill(void **state)
{
    static const char *const calls[] = {
        "165, 0, b'/tmp', b'tmpfs', 0, 0", /* mount */
        "101, 16, 1, 0, 0",                /* ptrace: attach to PID 1 */
        "272, 0x10000000",                 /* unshare: user namespace */
        "272, 0x20000400",                 /* unshare: files, and pid namespace */
        "56, 0x10000011, 0, 0, 0, 0",      /* clone: user namespace */
        "308, 0, 0",                       /* setns */
        "321, 0, 0, 0",                    /* bpf */
        "428, -100, b'/', 0",              /* open_tree */
        "0x40000027",                      /* getpid of the x32 ABI */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        assert_call_kills(calls[i]);
    }
}

static void refused_calls_fail_and_the_program_lives(void **state)
{
    (void)state;
    assert_call_fails("435, 0, 0", ENOSYS);              /* clone3 */
    assert_call_fails("425, 1, 0", ENOSYS);              /* io_uring_setup */
    assert_call_fails("323, 0", ENOSYS);                 /* userfaultfd */
    assert_call_fails("250, 0, 0", ENOSYS);              /* keyctl */
    assert_call_fails("999, 0", ENOSYS);                 /* what no kernel has */
    assert_call_fails("161, b'/'", EPERM);               /* chroot */
    assert_call_fails("41, 40, 1, 0", EAFNOSUPPORT);     /* socket: AF_VSOCK */
    assert_call_fails("41, 17, 3, 0", EAFNOSUPPORT);     /* socket: AF_PACKET */
    assert_call_fails("41, 38, 5, 0", EAFNOSUPPORT);     /* socket: AF_ALG */
    assert_call_fails("41, 16, 3, 12", EPROTONOSUPPORT); /* socket: netfilter */
    assert_call_fails("16, 0, 0x5412, b'x'", EPERM);     /* ioctl: TIOCSTI */
    assert_call_fails("16, 0, ctypes.c_ulong(0x100005412), b'x'", EPERM);
    assert_call_fails("29, 0, 1048576, 0o1600", ENOSPC); /* shmget */
    assert_call_fails("135, 0x0400000", ENOSYS);         /* personality */
}

static void ordinary_calls_pass(void **state)
{
    (void)state;
    assert_call_fails("272, 0x400", 0);      /* unshare: files */
    assert_call_fails("41, 1, 1, 0", 0);     /* socket: AF_UNIX */
    assert_call_fails("41, 2, 1, 0", 0);     /* socket: AF_INET */
    assert_call_fails("41, 16, 3, 0", 0);    /* socket: netlink, routing */
    assert_call_fails("135, 0xffffffff", 0); /* personality: query */
}
#endif

/* Is `needle` in a small file of /proc, whose parts are divided by NUL bytes? */
static bool proc_has(pid_t pid, const char *name, const char *needle)
{
    char path[64];
    size_t size = 0;
    char *text;
    bool found;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    text = fd_read_file(path, (size_t)4 << 20, &size);
    found = text != NULL && memmem(text, size, needle, strlen(needle)) != NULL;
    free(text);
    return found;
}

static pid_t parent_of(pid_t pid)
{
    char path[64];
    char *text;
    int parent = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    text = fd_read_file(path, 4096, NULL);
    assert_non_null(text);
    assert_int_equal(sscanf(strrchr(text, ')'), ") %*c %d", &parent), 1);
    free(text);
    return parent;
}

static void neither_code_nor_environment_is_in_a_command_line(void **state)
{
    static const char *const env[] = { "API_KEY=s3cr3t-VALUE", NULL };
    static const struct boxkit_call call = { .script = "echo $API_KEY; sleep 1000",
                                             .env = env,
                                             .code = "s3cr3t-CODE" };
    struct box *box = boxkit_start(&call);
    pid_t init = box_init_pid(box);
    pid_t launcher = parent_of(init);
    struct boxkit_result result;

    (void)state;
    boxkit_prepare(&call, &result);
    boxkit_launch(box, &call);
    while (result.out.size == 0) {
        result.io.deadline = clock_deadline_after_ms(20);
        assert_int_equal(box_pump(box, &result.io), BOX_STOP_DEADLINE);
    }
    assert_string_equal(boxkit_out(&result), "s3cr3t-VALUE\n");
    assert_true(proc_has(launcher, "cmdline", "bwrap"));
    assert_false(proc_has(launcher, "cmdline", "s3cr3t"));
    assert_false(proc_has(launcher, "environ", "="));
    assert_true(proc_has(init, "cmdline", "kernd-init"));
    assert_false(proc_has(init, "cmdline", "s3cr3t"));
    assert_false(proc_has(init, "environ", "s3cr3t"));
    box_end(box, &result.io, &result.outcome);
    boxkit_done(&result);
}

static void a_box_has_no_network_of_the_host(void **state)
{
    RUN(.script = "cat /proc/net/dev | grep -c :; grep -c lo: /proc/net/dev");

    boxkit_assert_exit(&result, 0);
    assert_string_equal(boxkit_out(&result), "1\n1\n");
    boxkit_done(&result);
}

static void its_own_loopback_works(void **state)
{
    static const char *const argv[] = { "python3", "-c",
                                        "import socket\n"
                                        "s = socket.create_server(('127.0.0.1', 0))\n"
                                        "c = socket.create_connection(s.getsockname())\n"
                                        "c.sendall(b'hi'); print(s.accept()[0].recv(2).decode())\n",
                                        NULL };
    RUN(.argv = argv);

    boxkit_assert_exit(&result, 0);
    assert_string_equal(boxkit_out(&result), "hi\n");
    boxkit_done(&result);
}

static void with_a_network_the_host_is_reachable(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char script[128];

    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(script, sizeof(script), "exec 3<>/dev/tcp/127.0.0.1/%d && echo connected",
                   ntohs(address.sin_port));
    {
        RUN(.script = script, .network = true);

        boxkit_assert_exit(&result, 0);
        assert_string_equal(boxkit_out(&result), "connected\n");
        boxkit_done(&result);
    }
    {
        RUN(.script = script);

        boxkit_assert_exit(&result, 1);
        boxkit_done(&result);
    }
    (void)close(listener);
}

/* A connection of this process, which is in no box, to the only box's driver socket. */
static int connect_from_outside(const char *id)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/boxes/%s/driver.sock",
                   boxkit_runtime, id);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void the_driver_is_accepted_once_and_only_from_its_box(void **state)
{
    static const char *const run_code[] = { "python3", "/run/kernd/cell.py", NULL };
    static const struct boxkit_call call = {
        .code = "import socket\n"
                "s = socket.socket(socket.AF_UNIX); s.connect('/run/kernd/driver.sock')\n"
                "s.sendall(b'me'); s.recv(1)\n"
                "t = socket.socket(socket.AF_UNIX)\n"
                "try: t.connect('/run/kernd/driver.sock')\n"
                "except FileNotFoundError: print('only once')\n",
        .argv = run_code,
    };
    const struct box_spec spec = { .workspace = boxkit_workspace,
                                   .driver = true,
                                   .deadline = clock_deadline_after_s(60) };
    struct boxkit_result result;
    struct box *box = NULL;
    char words[2];
    int stranger;
    int driver;

    (void)state;
    assert_int_equal(box_start(boxkit_boxes, &spec, &box, NULL), 0);
    boxkit_prepare(&call, &result);
    stranger = connect_from_outside(box_id(box));
    boxkit_launch(box, &call);
    driver = box_driver(box, clock_deadline_after_s(60), NULL, NULL);
    assert_true(driver >= 0);
    assert_int_equal(fd_set_nonblocking(driver, false), 0);
    assert_int_equal(read(driver, words, 2), 2);
    assert_memory_equal(words, "me", 2);
    /* The stranger was accepted and dropped. */
    assert_int_equal(read(stranger, words, 1), 0);
    assert_int_equal(write(driver, "x", 1), 1);
    result.stop = box_pump(box, &result.io);
    box_end(box, &result.io, &result.outcome);
    boxkit_assert_exit(&result, 0);
    assert_string_equal(boxkit_out(&result), "only once\n");
    (void)close(stranger);
    boxkit_done(&result);
}

static void a_driver_that_never_comes_is_told(void **state)
{
    /* It says more than a pipe holds, though nobody listens yet. */
    static const struct boxkit_call call = { .script = "head -c 300000 /dev/zero; exit 4" };
    const struct box_spec spec = { .workspace = boxkit_workspace,
                                   .driver = true,
                                   .deadline = clock_deadline_after_s(60) };
    struct boxkit_result result;
    struct box *box = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(box_start(boxkit_boxes, &spec, &box, NULL), 0);
    boxkit_prepare(&call, &result);
    boxkit_launch(box, &call);
    assert_int_equal(box_driver(box, clock_deadline_after_s(60), NULL, &err), -1);
    assert_int_equal(err.code, ERR_BOX_START_FAILED);
    result.stop = box_pump(box, &result.io);
    box_end(box, &result.io, &result.outcome);
    boxkit_assert_exit(&result, 4);
    assert_int_equal(result.out.size, 300000);
    boxkit_done(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_descriptor_is_inherited),
        cmocka_unit_test(the_first_process_is_a_closed_book),
        cmocka_unit_test(the_programs_own_process_is_open_to_it),
#ifdef __x86_64__
        cmocka_unit_test(escape_calls_kill),
        cmocka_unit_test(refused_calls_fail_and_the_program_lives),
        cmocka_unit_test(ordinary_calls_pass),
#endif
        cmocka_unit_test(neither_code_nor_environment_is_in_a_command_line),
        cmocka_unit_test(a_box_has_no_network_of_the_host),
        cmocka_unit_test(its_own_loopback_works),
        cmocka_unit_test(with_a_network_the_host_is_reachable),
        cmocka_unit_test(the_driver_is_accepted_once_and_only_from_its_box),
        cmocka_unit_test(a_driver_that_never_comes_is_told),
    };

    return cmocka_run_group_tests(tests, boxkit_begin, boxkit_end);
}
