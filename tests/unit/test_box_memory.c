/* SPDX-License-Identifier: Apache-2.0 */
/* The memory cap where no cgroup holds it. */
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

#include "tests/unit/boxkit.h"

#define CAP (64 * BOXKIT_MIB)

/* Runs python code under a cap of 64 MiB. */
static void run_python(const char *code, struct boxkit_result *result)
{
    const char *const argv[] = { "python3", "-c", code, NULL };

    boxkit_run(&(const struct boxkit_call){ .argv = argv, .limits = { .memory_bytes = CAP } },
               result);
}

static void assert_oom(const struct boxkit_result *result)
{
    if (result->stop != BOX_STOP_OOM) {
        fail_msg("stop %d: %s%s", result->stop, boxkit_out(result), boxkit_err(result));
    }
    assert_true(result->outcome.oom);
    assert_true(result->outcome.gone);
    assert_non_null(strstr(result->outcome.evidence, "64 MiB"));
    assert_true(result->outcome.peak_memory_bytes > (int64_t)CAP);
}

static void one_large_object_is_caught(void **state)
{
    struct boxkit_result result;

    (void)state;
    run_python("b = b'x' * (300 << 20)\nimport time; time.sleep(1000)", &result);
    assert_oom(&result);
    boxkit_done(&result);
}

/* The first of its mappings has a path that fills a page of smaps and more. */
static void long_names_hide_nothing(void **state)
{
    struct boxkit_result result;

    (void)state;
    run_python("import ctypes, os, time\n"
               "os.chdir('/tmp')\n"
               "for i in range(80): os.mkdir('\\n' * 250); os.chdir('\\n' * 250)\n"
               "f = os.open('f', os.O_CREAT | os.O_RDWR); os.write(f, b'x')\n"
               "place = ctypes.CDLL(None).mmap\n"
               "place.restype = ctypes.c_void_p\n"
               "assert place(ctypes.c_void_p(1 << 20), 4096, 1, 18, f, 0) == 1 << 20\n"
               "b = b'x' * (300 << 20); time.sleep(1000)\n",
               &result);
    assert_oom(&result);
    boxkit_done(&result);
}

static void many_processes_count_together(void **state)
{
    struct boxkit_result result;

    (void)state;
    run_python("import os, time\n"
               "for i in range(4):\n"
               "    if os.fork() == 0:\n"
               "        b = bytearray(os.urandom(1)) * (20 << 20); time.sleep(1000)\n"
               "time.sleep(1000)\n",
               &result);
    assert_oom(&result);
    boxkit_done(&result);
}

static void files_in_memory_count(void **state)
{
    static const struct boxkit_call call = {
        .script = "head -c 40M /dev/zero >/tmp/a; head -c 40M /dev/zero >/dev/shm/b; sleep 1000",
        .limits = { .memory_bytes = CAP },
    };
    struct boxkit_result result;

    (void)state;
    boxkit_run(&call, &result);
    assert_oom(&result);
    boxkit_done(&result);
}

static void a_memory_file_that_nobody_maps_counts(void **state)
{
    struct boxkit_result result;

    (void)state;
    run_python("import os, time\n"
               "f = os.memfd_create('x')\n"
               "for i in range(200): os.write(f, bytes(1 << 20))\n"
               "time.sleep(1000)\n",
               &result);
    assert_oom(&result);
    boxkit_done(&result);
}

static void a_memory_file_that_is_mapped_counts_once(void **state)
{
    struct boxkit_result result;

    (void)state;
    run_python("import mmap, os, time\n"
               "f = os.memfd_create('x'); os.ftruncate(f, 36 << 20)\n"
               "m = mmap.mmap(f, 36 << 20)\n"
               "for i in range(0, 36 << 20, 4096): m[i] = 1\n"
               "time.sleep(0.3); print('fine')\n",
               &result);
    boxkit_assert_exit(&result, 0);
    boxkit_done(&result);
}

static void one_file_in_memory_is_no_larger_than_the_cap(void **state)
{
    static const struct boxkit_call call = {
        .script = "head -c 100M /dev/zero >/tmp/a",
        .limits = { .memory_bytes = CAP },
    };
    struct boxkit_result result;

    (void)state;
    boxkit_run(&call, &result);
    assert_true(result.stop == BOX_STOP_OOM ||
                strstr(boxkit_err(&result), "No space left on device") != NULL);
    boxkit_done(&result);
}

static void shared_memory_counts_once(void **state)
{
    struct boxkit_result result;

    (void)state;
    run_python("import mmap, os, time\n"
               "m = mmap.mmap(-1, 24 << 20)\n"
               "m.write(b'x' * (24 << 20))\n"
               "for i in range(3):\n"
               "    if os.fork() == 0:\n"
               "        sum(m[i] for i in range(0, 24 << 20, 4096)); time.sleep(0.3); os._exit(0)\n"
               "for i in range(3): os.wait()\n"
               "print('fine')\n",
               &result);
    boxkit_assert_exit(&result, 0);
    assert_string_equal(boxkit_out(&result), "fine\n");
    boxkit_done(&result);
}

static void pages_of_files_do_not_count(void **state)
{
    struct boxkit_result result;

    (void)state;
    run_python("import mmap, time\n"
               "f = open('/workspace/big', 'w+b'); f.truncate(100 << 20)\n"
               "m = mmap.mmap(f.fileno(), 100 << 20, prot=mmap.PROT_READ)\n"
               "n = sum(m[i] for i in range(0, 100 << 20, 4096)); time.sleep(0.3); print(n)\n",
               &result);
    boxkit_assert_exit(&result, 0);
    assert_string_equal(boxkit_out(&result), "0\n");
    boxkit_done(&result);
}

static void below_the_cap_nothing_happens_and_the_peak_is_told(void **state)
{
    struct boxkit_result result;

    (void)state;
    run_python("b = b'x' * (30 << 20)\nimport time; time.sleep(0.3)", &result);
    boxkit_assert_exit(&result, 0);
    assert_true(result.outcome.peak_memory_bytes > (int64_t)(30 * BOXKIT_MIB));
    assert_true(result.outcome.peak_memory_bytes < (int64_t)CAP);
    assert_true(result.outcome.peak_pids >= 1);
    boxkit_done(&result);
}

static void a_killed_program_without_evidence_is_not_called_oom(void **state)
{
    static const struct boxkit_call call = { .script = "kill -9 $$",
                                             .limits = { .memory_bytes = CAP } };
    struct boxkit_result result;

    (void)state;
    boxkit_run(&call, &result);
    assert_int_equal(result.stop, BOX_STOP_EXITED);
    assert_false(result.outcome.oom);
    assert_int_equal(WTERMSIG(result.outcome.wait_status), SIGKILL);
    boxkit_done(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_large_object_is_caught),
        cmocka_unit_test(long_names_hide_nothing),
        cmocka_unit_test(many_processes_count_together),
        cmocka_unit_test(files_in_memory_count),
        cmocka_unit_test(a_memory_file_that_nobody_maps_counts),
        cmocka_unit_test(a_memory_file_that_is_mapped_counts_once),
        cmocka_unit_test(one_file_in_memory_is_no_larger_than_the_cap),
        cmocka_unit_test(shared_memory_counts_once),
        cmocka_unit_test(pages_of_files_do_not_count),
        cmocka_unit_test(below_the_cap_nothing_happens_and_the_peak_is_told),
        cmocka_unit_test(a_killed_program_without_evidence_is_not_called_oom),
    };

    return cmocka_run_group_tests(tests, boxkit_begin, boxkit_end);
}
