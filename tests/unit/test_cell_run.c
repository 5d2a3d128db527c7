/* SPDX-License-Identifier: Apache-2.0 */
/* One-shot cells of each language in real boxes. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "tests/unit/cellkit.h"

static void check(enum cell_language language, const char *code, int exit_code, const char *out)
{
    struct cellkit_result result;

    cellkit_once(language, code, &result);
    if (result.stop != BOX_STOP_EXITED || !WIFEXITED(result.outcome.wait_status) ||
        WEXITSTATUS(result.outcome.wait_status) != exit_code) {
        fail_msg("'%s': stop %d, status %x, stderr: %s", code, result.stop,
                 (unsigned)result.outcome.wait_status, cellkit_err(&result));
    }
    assert_string_equal(cellkit_out(&result), out);
    cellkit_done(&result);
}

static void python_runs_as_a_script_with_results(void **state)
{
    struct cellkit_result result;

    (void)state;
    cellkit_once(CELL_PYTHON, "print('hi')\ndisplay(1)\n[1, 2]", &result);
    assert_int_equal(result.stop, BOX_STOP_EXITED);
    assert_int_equal(result.outcome.wait_status, 0);
    assert_string_equal(cellkit_out(&result), "hi\n");
    assert_string_equal(cellkit_err(&result), "");
    assert_int_equal(result.results.count, 2);
    assert_string_equal(cellkit_text(&result, 0), "1");
    assert_string_equal(cellkit_text(&result, 1), "[1, 2]");
    assert_false(result.results.truncated);
    cellkit_done(&result);
}

static void exit_codes_are_the_interpreters(void **state)
{
    (void)state;
    check(CELL_PYTHON, "import sys; sys.exit(3)", 3, "");
    check(CELL_PYTHON, "1/0", 1, "");
    check(CELL_PYTHON, "import os; os._exit(137)", 137, "");
    check(CELL_BASH, "echo a; exit 4", 4, "a\n");
    check(CELL_BASH, "no-such-command", 127, "");
    check(CELL_NODE, "console.log(1); process.exit(5)", 5, "1\n");
    check(CELL_NODE, "throw new Error('x')", 1, "");
}

static void code_is_not_in_an_argument_list(void **state)
{
    (void)state;
    check(CELL_BASH, "tr '\\0' ' ' < /proc/$$/cmdline", 0, "bash /run/kernd/cell.sh ");
    check(CELL_PYTHON, "print(open('/proc/self/cmdline').read().replace('\\0', ' '))", 0,
          "python3 -S /run/kernd-lib/driver.py \n");
    check(CELL_NODE, "console.log(fs.readFileSync('/proc/self/cmdline','utf8').split('\\0'))", 0,
          "[ 'node', '/run/kernd-lib/driver.js', '' ]\n");
}

static void node_takes_scripts_and_modules(void **state)
{
    (void)state;
    check(CELL_NODE, "console.log(__filename, typeof require, os.EOL === '\\n')", 0,
          "[eval] function true\n");
    check(CELL_NODE, "import fs from 'fs'; console.log(typeof fs.readFileSync)", 0, "function\n");
}

static void a_closed_connection_costs_only_results(void **state)
{
    struct cellkit_result result;

    (void)state;
    cellkit_once(
        CELL_PYTHON,
        "import os, time\ndisplay(1)\nos.closerange(3, 1024)\ntime.sleep(0.05)\nprint('on')\n2",
        &result);
    assert_int_equal(result.outcome.wait_status, 0);
    assert_string_equal(cellkit_out(&result), "on\n");
    assert_int_equal(result.results.count, 1);
    cellkit_done(&result);
}

static void nonsense_on_the_connection_is_flagged(void **state)
{
    static const char *const attacks[] = { "b'garbage'", "bytes([18, 255, 255, 255, 255])",
                                           "bytes([18, 0, 0, 0, 1, 7])", "bytes([17, 0, 0, 0, 0])",
                                           "bytes([19, 0, 0, 0, 0])" };

    (void)state;
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
        struct cellkit_result result;
        char code[300];

        (void)snprintf(code, sizeof(code),
                       "import socket\ns = socket.socket(fileno=250)\ns.send(%s)\nprint('on')\n2",
                       attacks[i]);
        cellkit_once(CELL_PYTHON, code, &result);
        assert_int_equal(result.outcome.wait_status, 0);
        assert_string_equal(cellkit_out(&result), "on\n");
        assert_int_equal(result.results.count, 0);
        assert_true(result.results.truncated);
        cellkit_done(&result);
    }
}

static void the_driver_socket_is_gone_before_the_code_runs(void **state)
{
    (void)state;
    check(CELL_PYTHON, "import os; print(sorted(os.listdir('/run/kernd')))", 0, "['cell.py']\n");
}

static void pools_of_each_start_method_work(void **state)
{
    static const char *const methods[] = { "fork", "spawn", "forkserver" };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char code[400];

        (void)snprintf(code, sizeof(code),
                       "import multiprocessing as mp\ndef sq(x): return x*x\n"
                       "if __name__ == '__main__':\n"
                       "    with mp.get_context('%s').Pool(2) as p:\n"
                       "        print(p.map_async(sq, [1, 2, 3]).get(timeout=50))\n",
                       methods[i]);
        check(CELL_PYTHON, code, 0, "[1, 4, 9]\n");
    }
}

static void figures_go_to_files_unless_the_caller_says_otherwise(void **state)
{
    CLEANUP_STRV struct strv env = { 0 };
    struct cell_code what = { .language = CELL_PYTHON,
                              .code = "import os\nprint(os.environ['MPLBACKEND'], "
                                      "os.environ['MPLCONFIGDIR'])",
                              .env = &env };
    struct cellkit_result result;
    struct box *box = NULL;

    (void)state;
    check(CELL_PYTHON, what.code, 0, "Agg /tmp/.matplotlib\n");
    strv_add(&env, "MPLBACKEND=pdf");
    strv_add(&env, "MPLCONFIGDIR=/x");
    what.code_size = strlen(what.code);
    cellkit_prepare(&result, 60);
    what.results = &result.results;
    box = cellkit_box(NULL);
    assert_int_equal(cell_run_once(box, &what, &result.io, &result.stop, NULL), 0);
    box_end(box, &result.io, &result.outcome);
    assert_string_equal(cellkit_out(&result), "pdf /x\n");
    cellkit_done(&result);
}

static void a_deadline_and_a_missing_interpreter(void **state)
{
    CLEANUP_STRV struct strv env = { 0 };
    struct cell_code what = { .language = CELL_PYTHON, .code = "import time; time.sleep(60)" };
    struct cellkit_result result;

    (void)state;
    what.code_size = strlen(what.code);
    for (int missing = 0; missing < 2; missing++) {
        struct box *box = cellkit_box(NULL);

        if (missing) {
            strv_add(&env, "PATH=/nonexistent");
            what.env = &env;
        }
        cellkit_prepare(&result, 0.5);
        what.results = &result.results;
        assert_int_equal(cell_run_once(box, &what, &result.io, &result.stop, NULL), 0);
        box_end(box, &result.io, &result.outcome);
        assert_int_equal(result.stop, missing ? BOX_STOP_EXITED : BOX_STOP_DEADLINE);
        if (missing) {
            assert_int_equal(WEXITSTATUS(result.outcome.wait_status), 127);
        }
        cellkit_done(&result);
    }
}

static void a_repr_that_never_ends_meets_the_deadline(void **state)
{
    struct cell_code what = { .language = CELL_PYTHON,
                              .code =
                                  "class R:\n  def __repr__(self):\n    while True: pass\nR()" };
    struct box *box = cellkit_box(NULL);
    struct cellkit_result result;

    (void)state;
    what.code_size = strlen(what.code);
    cellkit_prepare(&result, 0.5);
    what.results = &result.results;
    assert_int_equal(cell_run_once(box, &what, &result.io, &result.stop, NULL), 0);
    box_end(box, &result.io, &result.outcome);
    assert_int_equal(result.stop, BOX_STOP_DEADLINE);
    cellkit_done(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(python_runs_as_a_script_with_results),
        cmocka_unit_test(exit_codes_are_the_interpreters),
        cmocka_unit_test(code_is_not_in_an_argument_list),
        cmocka_unit_test(node_takes_scripts_and_modules),
        cmocka_unit_test(a_closed_connection_costs_only_results),
        cmocka_unit_test(nonsense_on_the_connection_is_flagged),
        cmocka_unit_test(the_driver_socket_is_gone_before_the_code_runs),
        cmocka_unit_test(pools_of_each_start_method_work),
        cmocka_unit_test(figures_go_to_files_unless_the_caller_says_otherwise),
        cmocka_unit_test(a_deadline_and_a_missing_interpreter),
        cmocka_unit_test(a_repr_that_never_ends_meets_the_deadline),
    };

    return cmocka_run_group_tests(tests, cellkit_begin, cellkit_end);
}
