/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in real boxes: how they start, what they get, what comes back. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/strv.h"
#include "tests/unit/boxkit.h"

#define RUN(...)                 \
    struct boxkit_result result; \
    (void)state;                 \
    boxkit_run(&(const struct boxkit_call){ __VA_ARGS__ }, &result)

static void the_host_can_start_boxes(void **state)
{
    struct err err = ERR_INIT;
    struct boxes_abilities abilities;

    (void)state;
    if (boxes_ready(boxkit_boxes, &err) < 0) {
        fail_msg("%s (%s)", err.msg, err.remedy);
    }
    boxes_abilities(boxkit_boxes, &abilities);
    assert_string_equal(abilities.engine, "bubblewrap");
    assert_true(abilities.engine_version[0] >= '0' && abilities.engine_version[0] <= '9');
    assert_true(abilities.seccomp);
}

static void exit_codes_come_back_exactly(void **state)
{
    static const int codes[] = { 0, 1, 77, 125, 126, 127, 137, 143, 159, 255 };

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        char script[32];
        struct boxkit_result result;

        (void)state;
        (void)snprintf(script, sizeof(script), "exit %d", codes[i]);
        boxkit_run(&(const struct boxkit_call){ .script = script }, &result);
        boxkit_assert_exit(&result, codes[i]);
        assert_true(result.outcome.started);
        assert_int_equal(result.outcome.start_errno, 0);
        assert_false(result.outcome.oom);
        assert_false(result.outcome.escape_blocked);
        boxkit_done(&result);
    }
}

static void death_by_signal_is_told_as_such(void **state)
{
    static const int signals[] = { SIGKILL, SIGTERM, SIGSEGV, SIGABRT };

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        char script[32];
        struct boxkit_result result;

        (void)state;
        (void)snprintf(script, sizeof(script), "kill -%d $$", signals[i]);
        boxkit_run(&(const struct boxkit_call){ .script = script }, &result);
        assert_int_equal(result.stop, BOX_STOP_EXITED);
        assert_true(WIFSIGNALED(result.outcome.wait_status));
        assert_int_equal(WTERMSIG(result.outcome.wait_status), signals[i]);
        assert_false(result.outcome.oom);
        boxkit_done(&result);
    }
}

static void a_missing_command_is_127(void **state)
{
    static const char *const argv[] = { "no-such-program", NULL };
    RUN(.argv = argv);

    boxkit_assert_exit(&result, 127);
    assert_false(result.outcome.started);
    assert_int_equal(result.outcome.start_errno, ENOENT);
    assert_string_equal(boxkit_err(&result),
                        "kernd: cannot start 'no-such-program': No such file or directory\n");
    boxkit_done(&result);
}

static void a_file_that_is_no_program_is_126(void **state)
{
    static const char *const argv[] = { "/etc/passwd", NULL };
    RUN(.argv = argv);

    boxkit_assert_exit(&result, 126);
    assert_int_equal(result.outcome.start_errno, EACCES);
    assert_string_equal(boxkit_err(&result),
                        "kernd: cannot start '/etc/passwd': Permission denied\n");
    boxkit_done(&result);
}

static void a_missing_working_directory_is_126(void **state)
{
    RUN(.script = "true", .cwd = "/workspace/nowhere");

    boxkit_assert_exit(&result, 126);
    assert_string_equal(boxkit_err(&result),
                        "kernd: cannot start in '/workspace/nowhere': No such file or directory\n");
    boxkit_done(&result);
}

static void stdin_is_passed_whole_and_closed(void **state)
{
    enum { SIZE = 3 << 20 };
    char *data = malloc(SIZE);

    assert_non_null(data);
    for (size_t i = 0; i < SIZE; i++) {
        data[i] = (char)(i * 7);
    }
    {
        RUN(.script = "cat", .stdin_data = data, .stdin_size = SIZE, .max_output = SIZE);

        boxkit_assert_exit(&result, 0);
        assert_int_equal(result.out.size, SIZE);
        assert_memory_equal(result.out.data, data, SIZE);
        assert_false(result.io.truncated_stdout);
        boxkit_done(&result);
    }
    free(data);
}

static void a_program_that_ignores_stdin_still_ends(void **state)
{
    static char data[1 << 20];
    RUN(.script = "exec <&-; exit 3", .stdin_data = data, .stdin_size = sizeof(data));

    boxkit_assert_exit(&result, 3);
    boxkit_done(&result);
}

static void without_input_stdin_is_empty(void **state)
{
    RUN(.script = "wc -c");

    boxkit_assert_exit(&result, 0);
    assert_string_equal(boxkit_out(&result), "0\n");
    boxkit_done(&result);
}

static void the_environment_is_the_base_and_what_was_asked(void **state)
{
    static const char *const env[] = { "A=1", "HOME=/tmp", "EMPTY=", "WITH=a=b c\n", NULL };
    static const char *const argv[] = { "env", "-0", NULL };
    RUN(.argv = argv, .env = env);
    size_t found = 0;

    boxkit_assert_exit(&result, 0);
    for (size_t at = 0; at < result.out.size; at += strlen(result.out.data + at) + 1) {
        const char *item = result.out.data + at;

        found += strcmp(item, "A=1") == 0 || strcmp(item, "HOME=/tmp") == 0 ||
                 strcmp(item, "EMPTY=") == 0 || strcmp(item, "WITH=a=b c\n") == 0 ||
                 strcmp(item, "LANG=C.UTF-8") == 0 || strcmp(item, "TZ=UTC") == 0 ||
                 strcmp(item, "USER=sandbox") == 0;
        assert_null(strstr(item, "HOME=/home"));
    }
    assert_int_equal(found, 7);
    boxkit_done(&result);
}

static void the_place_is_as_promised(void **state)
{
    RUN(.script =
            "id -u; id -g; whoami; hostname; pwd; echo $HOME; date +%Z;"
            "touch /x /usr/x /etc/x /dev/x /run/x /run/kernd/x /var/x 2>/dev/null; ls -d /x "
            "/usr/x /etc/x /dev/x /run/x /run/kernd/x /var/x 2>/dev/null;"
            "for d in /tmp $HOME /dev/shm /workspace /var/tmp; do echo y >$d/y && cat $d/y; done;"
            "ls -A /workspace; rm /workspace/y");

    boxkit_assert_exit(&result, 0);
    assert_string_equal(boxkit_out(&result),
                        "1000\n1000\nsandbox\nsandbox\n/workspace\n/home/sandbox\nUTC\n"
                        "y\ny\ny\ny\ny\ny\n");
    boxkit_done(&result);
}

static void nothing_of_the_daemons_process_state_is_inherited(void **state)
{
    sigset_t all;
    sigset_t old;
    mode_t mask = umask(077);

    assert_int_equal(sigfillset(&all), 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &all, &old), 0);
    {
        RUN(.script = "grep -E '^Sig(Blk|Ign)|^NoNewPrivs|^Seccomp:|^CapEff' /proc/self/status;"
                      "umask; ulimit -c; cut -d' ' -f6 /proc/$$/stat");

        boxkit_assert_exit(&result, 0);
        assert_string_equal(boxkit_out(&result), "SigBlk:\t0000000000000000\n"
                                                 "SigIgn:\t0000000000000000\n"
                                                 "CapEff:\t0000000000000000\n"
                                                 "NoNewPrivs:\t1\nSeccomp:\t2\n0022\n0\n"
                                                 "2\n");
        boxkit_done(&result);
    }
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
    (void)umask(mask);
}

static void code_is_a_read_only_file(void **state)
{
    RUN(.script = "cat /run/kernd/cell.py; ls /run/kernd; echo x >/run/kernd/cell.py",
        .code = "print('hello')\n");

    boxkit_assert_exit(&result, 1);
    assert_string_equal(boxkit_out(&result), "print('hello')\ncell.py\n");
    boxkit_done(&result);
}

static void usage_is_measured(void **state)
{
    RUN(.script = "for ((i=0;i<300000;i++)); do :; done");

    boxkit_assert_exit(&result, 0);
    assert_true(result.outcome.cpu_user_us > 10000);
    assert_true(result.outcome.peak_memory_bytes > 1000000);
    assert_true(result.outcome.started_ns > 0);
    assert_true(result.outcome.ended_ns > result.outcome.started_ns);
    boxkit_done(&result);
}

static void too_large_a_command_is_refused(void **state)
{
    static const char *const arg = "0123456789abcdef";
    struct boxkit_call call = { 0 };
    struct box *box = boxkit_start(&call);
    struct box_outcome outcome;
    struct strv argv = { 0 };
    struct err err = ERR_INIT;

    (void)state;
    strv_add(&argv, "true");
    while (argv.count < 65000) {
        strv_addf(&argv, "%s%s%s%s", arg, arg, arg, arg);
    }
    assert_int_equal(box_begin(box, &(const struct box_program){ .argv = &argv }, &err), -1);
    assert_int_equal(err.code, ERR_BAD_VALUE);
    box_end(box, NULL, &outcome);
    assert_true(outcome.gone);
    assert_false(outcome.started);
    strv_done(&argv);
}

static void a_large_environment_arrives(void **state)
{
    enum { VALUE = 100000, COUNT = 15 };
    char *env[COUNT + 1] = { NULL };

    for (size_t i = 0; i < COUNT; i++) {
        env[i] = malloc(VALUE + 16);
        assert_non_null(env[i]);
        (void)snprintf(env[i], 16, "V%zu=", i);
        memset(env[i] + strlen(env[i]), 'x', VALUE);
        env[i][VALUE] = '\0';
    }
    {
        static const char *const argv[] = { "env", NULL };
        RUN(.argv = argv, .env = (const char *const *)env, .max_output = 4 * BOXKIT_MIB);

        boxkit_assert_exit(&result, 0);
        assert_true(result.out.size > (size_t)VALUE * COUNT);
        boxkit_done(&result);
    }
    for (size_t i = 0; i < COUNT; i++) {
        free(env[i]);
    }
}

static void a_box_that_gets_no_program_ends_cleanly(void **state)
{
    struct box *box = boxkit_start(&(const struct boxkit_call){ 0 });
    pid_t init = box_init_pid(box);
    struct box_outcome outcome;

    (void)state;
    assert_int_equal(kill(init, 0), 0);
    box_end(box, NULL, &outcome);
    assert_true(outcome.gone);
    assert_false(outcome.started);
    assert_false(outcome.has_status);
    assert_int_equal(kill(init, 0), -1);
}

static void signals_reach_the_program(void **state)
{
    static const struct boxkit_call call = {
        .script = "trap 'echo got; exit 5' USR1; echo ready; while :; do sleep 0.05; done",
        .timeout_s = 60,
    };
    struct box *box = boxkit_start(&call);
    struct boxkit_result result;

    (void)state;
    boxkit_prepare(&call, &result);
    boxkit_launch(box, &call);
    /* Until it says ready: rounds that end by their deadline are no end of the box. */
    while (result.out.size == 0) {
        result.io.deadline = clock_deadline_after_ms(20);
        assert_int_equal(box_pump(box, &result.io), BOX_STOP_DEADLINE);
    }
    assert_int_equal(box_signal(box, SIGUSR1, false, NULL), 0);
    result.io.deadline = clock_deadline_after_s(60);
    result.stop = box_pump(box, &result.io);
    box_end(box, &result.io, &result.outcome);
    boxkit_assert_exit(&result, 5);
    assert_string_equal(boxkit_out(&result), "ready\ngot\n");
    boxkit_done(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_can_start_boxes),
        cmocka_unit_test(exit_codes_come_back_exactly),
        cmocka_unit_test(death_by_signal_is_told_as_such),
        cmocka_unit_test(a_missing_command_is_127),
        cmocka_unit_test(a_file_that_is_no_program_is_126),
        cmocka_unit_test(a_missing_working_directory_is_126),
        cmocka_unit_test(stdin_is_passed_whole_and_closed),
        cmocka_unit_test(a_program_that_ignores_stdin_still_ends),
        cmocka_unit_test(without_input_stdin_is_empty),
        cmocka_unit_test(the_environment_is_the_base_and_what_was_asked),
        cmocka_unit_test(the_place_is_as_promised),
        cmocka_unit_test(nothing_of_the_daemons_process_state_is_inherited),
        cmocka_unit_test(code_is_a_read_only_file),
        cmocka_unit_test(usage_is_measured),
        cmocka_unit_test(too_large_a_command_is_refused),
        cmocka_unit_test(a_large_environment_arrives),
        cmocka_unit_test(a_box_that_gets_no_program_ends_cleanly),
        cmocka_unit_test(signals_reach_the_program),
    };

    return cmocka_run_group_tests(tests, boxkit_begin, boxkit_end);
}
