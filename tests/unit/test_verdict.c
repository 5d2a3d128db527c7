/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exit codes and faults come from what kernd did and saw, never from a guess by number.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/sandbox/verdict.h"

/* wait(2) form of an exit code and of a signal. */
#define EXITED(code) ((code) << 8)
#define SIGNALED(number) (number)

static struct run_result judge(enum box_stop stop, struct box_outcome outcome)
{
    struct run_result result;
    struct verdict_input input = {
        .stop = stop,
        .cancelled = CANCEL_CLIENT_GONE,
        .timeout_s = 2.5,
        .memory_mb = 64,
        .outcome = &outcome,
    };

    run_result_init(&result);
    verdict_apply(&input, &result);
    return result;
}

static void exit_codes_that_look_like_faults_are_none(void **state)
{
    static const int codes[] = { 0, 1, 3, 125, 126, 127, 137, 139, 143, 159, 255 };

    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        struct run_result result =
            judge(BOX_STOP_EXITED, (struct box_outcome){ .started = true,
                                                         .has_status = true,
                                                         .wait_status = EXITED(codes[i]) });

        assert_true(result.has_exit_code);
        assert_int_equal(result.exit_code, codes[i]);
        assert_int_equal(result.signal, 0);
        assert_int_equal(result.fault, RUN_FAULT_NONE);
    }
}

/* The deadline or a cancel came when the program had just ended. */
static void an_end_that_came_first_is_the_outcome(void **state)
{
    static const enum box_stop stops[] = { BOX_STOP_DEADLINE, BOX_STOP_CANCELLED };
    static const int statuses[] = { EXITED(0), EXITED(3), SIGNALED(SIGSEGV) };

    (void)state;
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        for (size_t j = 0; j < sizeof(statuses) / sizeof(statuses[0]); j++) {
            struct run_result result = judge(
                stops[i], (struct box_outcome){
                              .started = true, .has_status = true, .wait_status = statuses[j] });

            assert_int_equal(result.fault, RUN_FAULT_NONE);
            assert_true(result.has_exit_code);
        }
        assert_int_not_equal(
            judge(stops[i], (struct box_outcome){ .started = true,
                                                  .has_status = true,
                                                  .wait_status = SIGNALED(SIGKILL) })
                .fault,
            RUN_FAULT_NONE);
    }
}

static void a_signal_of_its_own_is_no_fault(void **state)
{
    static const int signals[] = { SIGKILL, SIGTERM, SIGSEGV, SIGALRM };

    (void)state;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct run_result result =
            judge(BOX_STOP_EXITED, (struct box_outcome){ .started = true,
                                                         .has_status = true,
                                                         .wait_status = SIGNALED(signals[i]) });

        assert_int_equal(result.exit_code, 128 + signals[i]);
        assert_int_equal(result.signal, signals[i]);
        assert_int_equal(result.fault, RUN_FAULT_NONE);
    }
}

static void a_blocked_call_is_told_with_its_evidence(void **state)
{
    struct run_result result =
        judge(BOX_STOP_EXITED, (struct box_outcome){ .started = true,
                                                     .has_status = true,
                                                     .wait_status = SIGNALED(SIGSYS),
                                                     .escape_blocked = true,
                                                     .evidence = "seccomp: SIGSYS" });

    (void)state;
    assert_int_equal(result.exit_code, 159);
    assert_int_equal(result.fault, RUN_FAULT_ESCAPE_BLOCKED);
    assert_string_equal(result.fault_evidence, "seccomp: SIGSYS");
}

static void kernds_own_acts_are_faults(void **state)
{
    struct run_result result = judge(BOX_STOP_DEADLINE, (struct box_outcome){ .started = true });

    (void)state;
    assert_int_equal(result.fault, RUN_FAULT_TIMEOUT);
    assert_int_equal(result.exit_code, 137);
    assert_non_null(strstr(result.fault_message, "2.5s"));
    result = judge(BOX_STOP_CANCELLED, (struct box_outcome){ .started = true });
    assert_int_equal(result.fault, RUN_FAULT_CANCELLED);
    result = judge(BOX_STOP_DISK, (struct box_outcome){ .started = true });
    assert_int_equal(result.fault, RUN_FAULT_DISK_FULL);
    result = judge(BOX_STOP_LOST, (struct box_outcome){ .started = true });
    assert_int_equal(result.fault, RUN_FAULT_KILLED);
}

static void oom_needs_evidence_and_beats_the_rest(void **state)
{
    struct run_result result =
        judge(BOX_STOP_OOM, (struct box_outcome){ .started = true, .oom = true });

    (void)state;
    assert_int_equal(result.fault, RUN_FAULT_OOM);
    assert_int_equal(result.exit_code, 137);
    assert_non_null(strstr(result.fault_message, "64 MiB"));
    result = judge(BOX_STOP_LOST,
                   (struct box_outcome){ .started = true, .oom = true, .evidence = "oom_kill 1" });
    assert_int_equal(result.fault, RUN_FAULT_OOM);
    assert_string_equal(result.fault_evidence, "oom_kill 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_that_look_like_faults_are_none),
        cmocka_unit_test(an_end_that_came_first_is_the_outcome),
        cmocka_unit_test(a_signal_of_its_own_is_no_fault),
        cmocka_unit_test(a_blocked_call_is_told_with_its_evidence),
        cmocka_unit_test(kernds_own_acts_are_faults),
        cmocka_unit_test(oom_needs_evidence_and_beats_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
