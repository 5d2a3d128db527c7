/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/sandbox/run.h"

static void kinds_are_read_as_they_are_written(void **state)
{
    (void)state;
    for (int i = RUN_COMMAND; i <= RUN_PULL; i++) {
        enum run_kind kind = RUN_COMMAND;

        assert_int_equal(run_kind_parse(run_kind_text((enum run_kind)i), &kind), 0);
        assert_int_equal(kind, i);
    }
    assert_int_equal(run_kind_parse("", &(enum run_kind){ RUN_COMMAND }), -1);
    assert_int_equal(run_kind_parse("Run", &(enum run_kind){ RUN_COMMAND }), -1);
}

static void faults_are_read_as_they_are_written(void **state)
{
    enum run_fault fault = RUN_FAULT_OOM;

    (void)state;
    assert_int_equal(run_fault_parse("", &fault), 0);
    assert_int_equal(fault, RUN_FAULT_NONE);
    for (int i = RUN_FAULT_TIMEOUT; i <= RUN_FAULT_LOST; i++) {
        assert_int_equal(run_fault_parse(run_fault_text((enum run_fault)i), &fault), 0);
        assert_int_equal(fault, i);
    }
    assert_int_equal(run_fault_parse("lost ", &fault), -1);
    assert_int_equal(fault, RUN_FAULT_LOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_read_as_they_are_written),
        cmocka_unit_test(faults_are_read_as_they_are_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
