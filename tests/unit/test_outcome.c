/* SPDX-License-Identifier: Apache-2.0 */
/* From what was heard and seen to what is told about a box that ended. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/box/outcome.h"

#define MIB (UINT64_C(1) << 20)

/* Facts of a box that ran to its end and nothing was measured from outside. */
static const struct outcome_facts quiet = {
    .usage = { -1, -1, -1, -1, -1, -1 },
    .stop = BOX_STOP_EXITED,
    .pumped = true,
    .ended_ns = 900,
    .gone = true,
    .peak_bytes = -1,
    .peak_pids = -1,
};

static struct initlink_report exited_with(int wait_status)
{
    return (struct initlink_report){
        .hello = true,
        .has_started = true,
        .started = { .at_ns = 100 },
        .has_exited = true,
        .exited = { .wait_status = wait_status,
                    .at_ns = 500,
                    .cpu_user_us = 7,
                    .cpu_system_us = 8,
                    .max_rss_bytes = 4096 },
    };
}

static void an_ordinary_end(void **state)
{
    struct initlink_report report = exited_with(3 << 8);
    struct box_outcome outcome;

    (void)state;
    outcome_judge(&report, &quiet, &outcome);
    assert_true(outcome.started);
    assert_true(outcome.has_status);
    assert_int_equal(outcome.wait_status, 3 << 8);
    assert_int_equal(outcome.started_ns, 100);
    assert_int_equal(outcome.ended_ns, 500);
    assert_int_equal(outcome.cpu_user_us, 7);
    assert_int_equal(outcome.cpu_system_us, 8);
    assert_int_equal(outcome.peak_memory_bytes, 4096);
    assert_int_equal(outcome.peak_pids, -1);
    assert_false(outcome.oom);
    assert_false(outcome.escape_blocked);
    assert_string_equal(outcome.evidence, "");
    assert_true(outcome.gone);
}

static void codes_that_look_like_faults_are_none(void **state)
{
    static const int statuses[] = { 137 << 8, 143 << 8, 159 << 8, 125 << 8, SIGKILL, SIGTERM };
    struct outcome_facts facts = quiet;
    struct box_outcome outcome;

    (void)state;
    facts.memory_cap = 64 * MIB;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct initlink_report report = exited_with(statuses[i]);

        outcome_judge(&report, &facts, &outcome);
        assert_false(outcome.oom);
        assert_false(outcome.escape_blocked);
        assert_false(outcome.disk_full);
        assert_string_equal(outcome.evidence, "");
    }
}

static void only_a_death_by_sigsys_is_an_escape(void **state)
{
    struct initlink_report report = exited_with(SIGSYS | 0x80);
    struct box_outcome outcome;

    (void)state;
    outcome_judge(&report, &quiet, &outcome);
    assert_true(outcome.escape_blocked);
    assert_non_null(strstr(outcome.evidence, "SIGSYS"));
    report.started.start_errno = EACCES; /* then it was not the program */
    outcome_judge(&report, &quiet, &outcome);
    assert_false(outcome.escape_blocked);
}

static void a_failed_exec_never_started(void **state)
{
    struct initlink_report report = exited_with(127 << 8);
    struct box_outcome outcome;

    (void)state;
    report.started.start_errno = ENOENT;
    outcome_judge(&report, &quiet, &outcome);
    assert_false(outcome.started);
    assert_int_equal(outcome.started_ns, 0);
    assert_int_equal(outcome.start_errno, ENOENT);
    assert_true(outcome.has_status);
    assert_string_equal(outcome.evidence, "exec failed: No such file or directory");
}

static void oom_by_the_watchdog_has_numbers(void **state)
{
    struct initlink_report report = exited_with(SIGKILL);
    struct outcome_facts facts = quiet;
    struct box_outcome outcome;

    (void)state;
    facts.stop = BOX_STOP_OOM;
    facts.memory_cap = 64 * MIB;
    facts.over_bytes = 70 * MIB;
    facts.over_processes = 2;
    facts.peak_bytes = (int64_t)(70 * MIB);
    facts.peak_pids = 5;
    outcome_judge(&report, &facts, &outcome);
    assert_true(outcome.oom);
    assert_string_equal(outcome.evidence,
                        "memory watchdog: 70 MiB in 2 processes, above the cap of 64 MiB");
    assert_int_equal(outcome.peak_memory_bytes, 70 * MIB);
    assert_int_equal(outcome.peak_pids, 5);
}

static void the_kernels_own_counts_win(void **state)
{
    struct initlink_report report = exited_with(0);
    struct outcome_facts facts = quiet;
    struct box_outcome outcome;

    (void)state;
    facts.usage = (struct cgroup_usage){ .cpu_user_us = 70,
                                         .cpu_system_us = 80,
                                         .memory_bytes = 1,
                                         .peak_memory_bytes = 9 * (int64_t)MIB,
                                         .peak_pids = 5 };
    outcome_judge(&report, &facts, &outcome);
    assert_int_equal(outcome.cpu_user_us, 70);
    assert_int_equal(outcome.cpu_system_us, 80);
    assert_int_equal(outcome.peak_memory_bytes, 9 * (int64_t)MIB);
    assert_int_equal(outcome.peak_pids, 5);
    assert_false(outcome.oom);
}

static void a_kill_for_memory_by_the_kernel_is_evidence(void **state)
{
    struct initlink_report report = exited_with(0);
    struct outcome_facts facts = quiet;
    struct box_outcome outcome;

    (void)state;
    facts.memory_cap = 64 * MIB;
    facts.usage.oom_kills = 2;
    facts.usage.peak_memory_bytes = 64 * (int64_t)MIB;
    outcome_judge(&report, &facts, &outcome);
    assert_true(outcome.oom);
    assert_string_equal(outcome.evidence, "memory.events: oom_kill 2, cap 64 MiB, peak 64 MiB");
}

static void a_full_workspace_is_told(void **state)
{
    struct initlink_report report = exited_with(SIGKILL);
    struct outcome_facts facts = quiet;
    struct box_outcome outcome;

    (void)state;
    facts.stop = BOX_STOP_DISK;
    facts.disk_cap = 10 * MIB;
    facts.disk_bytes = 13 * MIB;
    outcome_judge(&report, &facts, &outcome);
    assert_true(outcome.disk_full);
    assert_non_null(strstr(outcome.evidence, "10 MiB"));
    assert_non_null(strstr(outcome.evidence, "13 MiB"));
}

static void too_many_files_are_told(void **state)
{
    struct initlink_report report = exited_with(SIGKILL);
    struct outcome_facts facts = quiet;
    struct box_outcome outcome;

    (void)state;
    facts.stop = BOX_STOP_DISK;
    facts.disk_cap = 10 * MIB;
    facts.files_cap = 1000;
    facts.files = 1234;
    outcome_judge(&report, &facts, &outcome);
    assert_true(outcome.disk_full);
    assert_string_equal(outcome.evidence, "counted: 1234 files and directories (inodes) in the "
                                          "workspace, above the ceiling of 1000");
}

static void a_box_that_vanished_has_no_numbers(void **state)
{
    const struct initlink_report report = {
        .hello = true, .has_started = true, .started = { .at_ns = 100 }, .lost = true
    };
    struct outcome_facts facts = quiet;
    struct box_outcome outcome;

    (void)state;
    facts.stop = BOX_STOP_LOST;
    outcome_judge(&report, &facts, &outcome);
    assert_true(outcome.started);
    assert_false(outcome.has_status);
    assert_int_equal(outcome.ended_ns, 900);
    assert_int_equal(outcome.cpu_user_us, -1);
    assert_int_equal(outcome.cpu_system_us, -1);
    assert_int_equal(outcome.peak_memory_bytes, -1);
    assert_true(outcome.evidence[0] != '\0');
}

/* Appends one message of the conversation. */
static void say(struct buf *bytes, uint32_t type, const void *body, size_t size)
{
    struct init_wire_header header = { .type = type, .size = (uint32_t)size };

    assert_int_equal(buf_append(bytes, &header, sizeof(header)), 0);
    assert_int_equal(buf_append(bytes, body, size), 0);
}

static void say_all(struct buf *bytes)
{
    struct init_wire_hello hello = { .version = INIT_WIRE_VERSION };
    struct init_wire_started started = { .at_ns = 5 };
    struct init_wire_exited exited = { .wait_status = 256 };

    say(bytes, INIT_WIRE_HELLO, &hello, sizeof(hello));
    say(bytes, INIT_WIRE_STARTED, &started, sizeof(started));
    say(bytes, INIT_WIRE_EXITED, &exited, sizeof(exited));
}

static void reports_are_understood_however_they_are_cut(void **state)
{
    CLEANUP_BUF struct buf bytes = BUF_INIT(4096);

    (void)state;
    say_all(&bytes);
    for (size_t cut = 0; cut <= bytes.size; cut++) {
        struct initlink_report report = { 0 };
        size_t used = initlink_parse(&report, bytes.data, cut);

        assert_false(report.lost);
        used += initlink_parse(&report, bytes.data + used, bytes.size - used);
        assert_int_equal(used, bytes.size);
        assert_true(report.hello);
        assert_true(report.has_started);
        assert_true(report.has_exited);
        assert_false(report.lost);
        assert_int_equal(report.exited.wait_status, 256);
    }
}

static void assert_lost(const struct buf *bytes)
{
    struct initlink_report report = { 0 };

    (void)initlink_parse(&report, bytes->data, bytes->size);
    assert_true(report.lost);
}

static void nonsense_is_a_lost_connection(void **state)
{
    struct init_wire_hello hello = { .version = INIT_WIRE_VERSION };
    struct init_wire_hello stranger = { .version = INIT_WIRE_VERSION + 1 };
    struct init_wire_started started = { 0 };
    struct init_wire_exited exited = { 0 };
    CLEANUP_BUF struct buf bytes = BUF_INIT(4096);

    (void)state;
    say(&bytes, INIT_WIRE_HELLO, &stranger, sizeof(stranger));
    assert_lost(&bytes);
    buf_reset(&bytes);
    say(&bytes, INIT_WIRE_STARTED, &started, sizeof(started)); /* before hello */
    assert_lost(&bytes);
    buf_reset(&bytes);
    say(&bytes, INIT_WIRE_HELLO, &hello, sizeof(hello));
    say(&bytes, INIT_WIRE_EXITED, &exited, sizeof(exited)); /* before started */
    assert_lost(&bytes);
    buf_reset(&bytes);
    say_all(&bytes);
    say(&bytes, INIT_WIRE_EXITED, &exited, sizeof(exited)); /* twice */
    assert_lost(&bytes);
    buf_reset(&bytes);
    say(&bytes, INIT_WIRE_START, &hello, sizeof(hello)); /* kernd's own to say */
    assert_lost(&bytes);
    buf_reset(&bytes);
    say(&bytes, INIT_WIRE_HELLO, &exited, sizeof(exited)); /* of the wrong size */
    assert_lost(&bytes);
    buf_reset(&bytes);
    say(&bytes, 0xffffffff, "", 0);
    assert_lost(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ordinary_end),
        cmocka_unit_test(codes_that_look_like_faults_are_none),
        cmocka_unit_test(only_a_death_by_sigsys_is_an_escape),
        cmocka_unit_test(a_failed_exec_never_started),
        cmocka_unit_test(oom_by_the_watchdog_has_numbers),
        cmocka_unit_test(the_kernels_own_counts_win),
        cmocka_unit_test(a_kill_for_memory_by_the_kernel_is_evidence),
        cmocka_unit_test(a_full_workspace_is_told),
        cmocka_unit_test(too_many_files_are_told),
        cmocka_unit_test(a_box_that_vanished_has_no_numbers),
        cmocka_unit_test(reports_are_understood_however_they_are_cut),
        cmocka_unit_test(nonsense_is_a_lost_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
