/* SPDX-License-Identifier: Apache-2.0 */
/* Python kernels in real boxes: state, interrupts, deadlines, deaths, late output. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "tests/unit/cellkit.h"

static struct kernel *open_python(void)
{
    return cellkit_kernel(CELL_PYTHON, NULL);
}

static void variables_stay_between_cells(void **state)
{
    struct kernel *kernel = open_python();
    struct box_outcome outcome;
    struct cellkit_result result;

    (void)state;
    assert_non_null(strstr(kernel_interpreter(kernel), "python 3."));
    cellkit_expect(kernel, "x = 20", "");
    cellkit_run(kernel, "print('hi')\nx + 22", 60, &result);
    assert_true(result.reply.alive);
    assert_int_equal(result.stop, BOX_STOP_PEER_DONE);
    assert_true(result.reply.has_exit_code);
    assert_int_equal(result.reply.exit_code, 0);
    assert_string_equal(cellkit_out(&result), "hi\n");
    assert_string_equal(cellkit_text(&result, 0), "42");
    cellkit_done(&result);
    assert_int_equal(kernel_cells(kernel), 2);
    kernel_close(kernel, &outcome);
    assert_true(outcome.gone);
    assert_true(outcome.has_status);
    assert_int_equal(outcome.wait_status, 0);
}

static void errors_and_exits_keep_the_kernel(void **state)
{
    struct kernel *kernel = open_python();
    struct box_outcome outcome;
    struct cellkit_result result;

    (void)state;
    cellkit_run(kernel, "1/0", 60, &result);
    assert_int_equal(result.reply.exit_code, 1);
    assert_non_null(strstr(cellkit_err(&result), "File \"cell 1\", line 1, in <module>"));
    assert_non_null(strstr(cellkit_err(&result), "ZeroDivisionError"));
    cellkit_done(&result);
    cellkit_run(kernel, "import sys; sys.exit('no')", 60, &result);
    assert_true(result.reply.alive);
    assert_int_equal(result.reply.exit_code, 1);
    assert_string_equal(cellkit_err(&result), "no\n");
    cellkit_done(&result);
    cellkit_expect(kernel, "print(1)", "1\n");
    kernel_close(kernel, &outcome);
}

static void a_deadline_interrupts_and_keeps_the_state(void **state)
{
    struct kernel *kernel = open_python();
    struct box_outcome outcome;
    struct cellkit_result result;

    (void)state;
    cellkit_run(kernel, "x = 7\nprint('begun')\nwhile True: pass", 0.5, &result);
    assert_int_equal(result.stop, BOX_STOP_DEADLINE);
    assert_true(result.reply.alive);
    assert_true(result.reply.interrupted);
    assert_int_equal(result.reply.exit_code, 130);
    assert_string_equal(cellkit_out(&result), "begun\n");
    assert_non_null(strstr(cellkit_err(&result), "KeyboardInterrupt"));
    cellkit_done(&result);
    cellkit_expect(kernel, "print(x)", "7\n");
    kernel_close(kernel, &outcome);
}

static void a_cell_that_can_not_be_interrupted_is_killed(void **state)
{
    struct kernel *kernel = open_python();
    struct box_outcome outcome;
    struct cellkit_result result;
    int64_t began;

    (void)state;
    began = clock_mono_ns();
    cellkit_run(kernel,
                "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
                0.5, &result);
    assert_int_equal(result.stop, BOX_STOP_DEADLINE);
    assert_false(result.reply.alive);
    assert_false(result.reply.has_exit_code);
    cellkit_done(&result);
    kernel_close(kernel, &outcome);
    assert_true(outcome.gone);
    assert_true(clock_ms_between(began, clock_mono_ns()) < 15000);
}

static void a_deadline_kills_where_that_was_asked_for(void **state)
{
    struct kernel *kernel = open_python();
    struct box_outcome outcome;
    struct cellkit_result result;
    struct kernel_cell cell = { .code = "import time; time.sleep(60)",
                                .code_size = 27,
                                .kill = true };

    (void)state;
    cellkit_prepare(&result, 0.3);
    cell.io = &result.io;
    cell.results = &result.results;
    assert_int_equal(kernel_run(kernel, &cell, &result.reply, NULL), 0);
    assert_int_equal(result.reply.stop, BOX_STOP_DEADLINE);
    assert_false(result.reply.alive);
    cellkit_done(&result);
    kernel_close(kernel, &outcome);
}

static void a_dead_kernel_takes_no_cell(struct kernel *kernel)
{
    struct cellkit_result result;
    struct kernel_cell cell = { .code = "1", .code_size = 1 };
    struct err err = ERR_INIT;

    cellkit_prepare(&result, 10);
    cell.io = &result.io;
    cell.results = &result.results;
    assert_int_equal(kernel_run(kernel, &cell, &result.reply, &err), -1);
    assert_int_equal(err.code, ERR_KERNEL_DEAD);
    cellkit_done(&result);
}

static void deaths_are_told_apart(void **state)
{
    static const struct {
        const char *code;
        int wait_status;
    } deaths[] = {
        { "import os; os._exit(3)", 3 << 8 },
        { "import ctypes; ctypes.string_at(0)", SIGSEGV },
        { "import os; os.kill(os.getpid(), 15)", SIGTERM },
        { "import os; os.kill(os.getpid(), 9)", SIGKILL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
        struct kernel *kernel = open_python();
        struct box_outcome outcome;
        struct cellkit_result result;

        cellkit_run(kernel, deaths[i].code, 60, &result);
        assert_false(result.reply.alive);
        assert_false(result.reply.has_exit_code);
        cellkit_done(&result);
        a_dead_kernel_takes_no_cell(kernel);
        kernel_close(kernel, &outcome);
        assert_true(outcome.has_status);
        assert_int_equal(outcome.wait_status & 0xff7f, deaths[i].wait_status);
        assert_false(outcome.oom);
    }
}

static void a_death_between_cells_is_seen_by_the_next(void **state)
{
    struct kernel *kernel = open_python();
    struct box_outcome outcome;

    (void)state;
    cellkit_expect(kernel, "import signal; signal.setitimer(signal.ITIMER_REAL, 0.01); None", "");
    /* The death itself is the event to wait for; a cell that came before it would see it too. */
    for (int i = 0; i < 2000 && kill(box_init_pid(kernel_box(kernel)), 0) == 0; i++) {
        struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };

        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    a_dead_kernel_takes_no_cell(kernel);
    kernel_close(kernel, &outcome);
    assert_int_equal(outcome.wait_status, SIGALRM);
}

static void nonsense_from_the_driver_kills_only_its_kernel(void **state)
{
    static const char *const attacks[] = {
        "s.send(b'garbage')",
        "s.send(bytes([19]) + (9).to_bytes(4, 'big') + bytes([0, 0, 0, 99, 0, 0, 0, 0, 0]))",
        "s.send(bytes([18]) + (5).to_bytes(4, 'big') + b'hello')",
        "s.send(bytes([18, 255, 255, 255, 255]))",
        "s.send(bytes([17, 0, 0, 0, 1, 1]))",
        "s.shutdown(socket.SHUT_RDWR)",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
        struct kernel *kernel = open_python();
        struct box_outcome outcome;
        struct cellkit_result result;

        cellkit_expect(kernel, "import socket, time; s = socket.socket(fileno=250)", "");
        cellkit_run(kernel, attacks[i], 60, &result);
        if (result.reply.alive) {
            cellkit_done(&result);
            cellkit_run(kernel, "time.sleep(60)", 60, &result);
        }
        assert_false(result.reply.alive);
        assert_int_equal(result.stop == BOX_STOP_PEER_LOST || result.stop == BOX_STOP_EXITED, true);
        cellkit_done(&result);
        kernel_close(kernel, &outcome);
        assert_true(outcome.gone);
    }
}

static void a_forged_end_costs_the_kernel_at_the_next_cell(void **state)
{
    struct kernel *kernel = open_python();
    struct box_outcome outcome;
    struct cellkit_result result;

    (void)state;
    cellkit_run(kernel,
                "import socket, time\ns = socket.socket(fileno=250)\n"
                "s.send(bytes([19, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0]))\ntime.sleep(0.2)",
                60, &result);
    cellkit_done(&result);
    cellkit_run(kernel, "print('second')", 60, &result);
    assert_false(result.reply.alive);
    assert_true(result.reply.nonsense);
    cellkit_done(&result);
    kernel_close(kernel, &outcome);
}

static size_t count_in(const struct buf *buf, const char *word)
{
    size_t count = 0;

    for (const char *at = buf->data; at != NULL && (at = strstr(at, word)) != NULL; at++) {
        count++;
    }
    return count;
}

static void late_output_comes_once_and_apart(void **state)
{
    struct kernel *kernel = open_python();
    struct box_outcome outcome;
    size_t seen = 0;

    (void)state;
    cellkit_expect(kernel,
                   "import os, threading, time\n"
                   "def late():\n    time.sleep(0.1)\n    print('late')\n"
                   "t = threading.Thread(target=late)\nt.start()\nprint('first')",
                   "first\n");
    for (int i = 0; i < 2000 && seen == 0; i++) {
        struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
        struct cellkit_result result;

        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        cellkit_run(kernel, "print('next')", 60, &result);
        seen = count_in(&result.reply.late_stdout, "late\n") + count_in(&result.out, "late\n");
        assert_int_equal(count_in(&result.out, "next\n"), 1);
        assert_int_equal(count_in(&result.reply.late_stdout, "next\n"), 0);
        cellkit_done(&result);
    }
    assert_int_equal(seen, 1);
    cellkit_expect(kernel, "t.join(); print('last')", "last\n");
    kernel_close(kernel, &outcome);
}

static void a_flood_is_cut_and_keeps_the_kernel(void **state)
{
    struct kernel *kernel = open_python();
    struct box_outcome outcome;
    struct cellkit_result result;

    (void)state;
    cellkit_run(kernel,
                "for i in range(200000): print(i)\nimport os\n"
                "for i in range(64): os.write(1, b'x' * (1 << 20))\n"
                "for i in range(3000): display(i)\n'y' * 3000000",
                60, &result);
    assert_true(result.reply.alive);
    assert_int_equal(result.reply.exit_code, 0);
    assert_true(result.io.truncated_stdout);
    assert_int_equal(result.out.size, 1 << 20);
    assert_memory_equal(result.out.data, "0\n1\n2\n", 6);
    assert_int_equal(result.results.count, CELL_RESULTS_MAX);
    assert_true(result.results.truncated);
    cellkit_done(&result);
    cellkit_expect(kernel, "print('alive')", "alive\n");
    kernel_close(kernel, &outcome);
}

static void background_children_do_not_hold_a_cell(void **state)
{
    struct kernel *kernel = open_python();
    struct box_outcome outcome;
    int64_t began = clock_mono_ns();

    (void)state;
    cellkit_expect(kernel,
                   "import subprocess\nc = subprocess.Popen(['sleep', '50'])\nprint('done')",
                   "done\n");
    kernel_close(kernel, &outcome);
    assert_true(outcome.gone);
    assert_true(clock_ms_between(began, clock_mono_ns()) < 20000);
}

struct interrupter {
    struct kernel *kernel;
    pthread_t thread;
    atomic_bool stop;
    int sent;
};

static void *interrupt_often(void *argument)
{
    struct interrupter *interrupter = argument;
    struct timespec pause = { .tv_nsec = 1500 * 1000 };

    while (!atomic_load(&interrupter->stop)) {
        if (kernel_interrupt(interrupter->kernel, NULL) == 0) {
            interrupter->sent++;
        }
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    return NULL;
}

static void interrupts_at_any_moment_lose_nothing(void **state)
{
    struct interrupter interrupter = { .kernel = open_python() };
    struct box_outcome outcome;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(kernel_interrupt(interrupter.kernel, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    cellkit_expect(interrupter.kernel, "n = 0", "");
    assert_int_equal(pthread_create(&interrupter.thread, NULL, interrupt_often, &interrupter), 0);
    for (int i = 0; i < 300; i++) {
        struct cellkit_result result;

        cellkit_run(interrupter.kernel, "n += 1\nsum(range(30000))\nprint(n)", 60, &result);
        assert_true(result.reply.alive);
        assert_int_equal(result.reply.exit_code, result.reply.interrupted ? 130 : 0);
        cellkit_done(&result);
    }
    atomic_store(&interrupter.stop, true);
    assert_int_equal(pthread_join(interrupter.thread, NULL), 0);
    assert_true(interrupter.sent > 0);
    cellkit_expect(interrupter.kernel, "print('alive')", "alive\n");
    kernel_close(interrupter.kernel, &outcome);
}

static void a_cell_reads_its_own_input(void **state)
{
    struct kernel *kernel = open_python();
    struct box_outcome outcome;
    struct cellkit_result result;
    struct kernel_cell cell = {
        .code = "print(input())", .code_size = 14, .stdin_data = "one\ntwo", .stdin_size = 7
    };

    (void)state;
    cellkit_prepare(&result, 60);
    cell.io = &result.io;
    cell.results = &result.results;
    assert_int_equal(kernel_run(kernel, &cell, &result.reply, NULL), 0);
    assert_string_equal(cellkit_out(&result), "one\n");
    cellkit_done(&result);
    cellkit_run(kernel, "input()", 60, &result);
    assert_non_null(strstr(cellkit_err(&result), "EOFError"));
    cellkit_done(&result);
    kernel_close(kernel, &outcome);
}

static void other_languages_keep_their_state_too(void **state)
{
    static const struct {
        enum cell_language language;
        const char *set;
        const char *get;
        const char *loop;
    } cells[] = {
        { CELL_BASH, "x=7; f() { echo $x; }; exit 0", "f", "while :; do :; done" },
        { CELL_NODE, "let x = 7", "let y = x; console.log(y)", "while (true);" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
        struct kernel *kernel = cellkit_kernel(cells[i].language, NULL);
        struct box_outcome outcome;
        struct cellkit_result result;

        cellkit_expect(kernel, cells[i].set, "");
        cellkit_expect(kernel, cells[i].get, "7\n");
        cellkit_run(kernel, cells[i].loop, 0.5, &result);
        assert_int_equal(result.stop, BOX_STOP_DEADLINE);
        assert_true(result.reply.alive);
        assert_true(result.reply.interrupted);
        cellkit_done(&result);
        cellkit_expect(kernel, cells[i].get, "7\n");
        kernel_close(kernel, &outcome);
        assert_true(outcome.gone);
        assert_int_equal(outcome.wait_status, 0);
    }
}

static void a_driver_that_does_not_start_is_told(void **state)
{
    CLEANUP_STRV struct strv env = { 0 };
    struct kernel_config config = { .language = CELL_PYTHON,
                                    .env = &env,
                                    .deadline = clock_deadline_after_s(60) };
    struct box *box = cellkit_box(NULL);
    struct kernel *kernel = NULL;
    struct box_outcome outcome;
    struct err err = ERR_INIT;

    (void)state;
    strv_add(&env, "PATH=/nonexistent");
    assert_int_equal(kernel_open(box, &config, &kernel, &err), -1);
    assert_int_equal(err.code, ERR_BOX_START_FAILED);
    box_end(box, NULL, &outcome);
    assert_int_equal(WEXITSTATUS(outcome.wait_status), 127);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_stay_between_cells),
        cmocka_unit_test(errors_and_exits_keep_the_kernel),
        cmocka_unit_test(a_deadline_interrupts_and_keeps_the_state),
        cmocka_unit_test(a_cell_that_can_not_be_interrupted_is_killed),
        cmocka_unit_test(a_deadline_kills_where_that_was_asked_for),
        cmocka_unit_test(deaths_are_told_apart),
        cmocka_unit_test(a_death_between_cells_is_seen_by_the_next),
        cmocka_unit_test(nonsense_from_the_driver_kills_only_its_kernel),
        cmocka_unit_test(a_forged_end_costs_the_kernel_at_the_next_cell),
        cmocka_unit_test(late_output_comes_once_and_apart),
        cmocka_unit_test(a_flood_is_cut_and_keeps_the_kernel),
        cmocka_unit_test(background_children_do_not_hold_a_cell),
        cmocka_unit_test(interrupts_at_any_moment_lose_nothing),
        cmocka_unit_test(a_cell_reads_its_own_input),
        cmocka_unit_test(other_languages_keep_their_state_too),
        cmocka_unit_test(a_driver_that_does_not_start_is_told),
    };

    return cmocka_run_group_tests(tests, cellkit_begin, cellkit_end);
}
