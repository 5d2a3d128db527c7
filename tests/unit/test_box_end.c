/* SPDX-License-Identifier: Apache-2.0 */
/* Output caps, deadlines and the stop ladder, against programs that resist. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/base/fd.h"
#include "tests/unit/boxkit.h"

/* Generous: the machine may be busy. A program that held on would take far longer. */
#define SOON_MS 20000

#define RUN(...)                 \
    struct boxkit_result result; \
    (void)state;                 \
    boxkit_run(&(const struct boxkit_call){ __VA_ARGS__ }, &result)

struct tally {
    struct sink sink;
    size_t started;
    size_t truncated[3];
    uint64_t bytes[3];
    bool out_of_order;
};

static void count(struct sink *sink, const struct sink_event *event)
{
    struct tally *tally = CONTAINER_OF(sink, struct tally, sink);
    size_t stream = event->kind == SINK_STDOUT ? 1 : 2;

    if (event->kind == SINK_STARTED) {
        tally->out_of_order |= tally->bytes[1] + tally->bytes[2] > 0;
        tally->started++;
    } else if (event->kind == SINK_TRUNCATED) {
        tally->truncated[event->value]++;
    } else {
        tally->out_of_order |= event->value != tally->bytes[stream] || event->size == 0;
        tally->bytes[stream] += event->size;
    }
}

static void output_is_kept_up_to_the_cap(void **state)
{
    struct tally tally = { .sink = { .emit = count } };
    RUN(.script = "head -c 300000 /dev/zero; head -c 5000 /dev/zero >&2", .max_output = 4096,
        .sink = &tally.sink);

    boxkit_assert_exit(&result, 0);
    assert_int_equal(result.out.size, 4096);
    assert_int_equal(result.err.size, 4096);
    assert_true(result.io.truncated_stdout);
    assert_true(result.io.truncated_stderr);
    assert_int_equal(result.io.total_stdout, 300000);
    assert_int_equal(result.io.total_stderr, 5000);
    assert_int_equal(tally.started, 1);
    assert_int_equal(tally.truncated[1], 1);
    assert_int_equal(tally.truncated[2], 1);
    assert_int_equal(tally.bytes[1], 4096);
    assert_int_equal(tally.bytes[2], 4096);
    assert_false(tally.out_of_order);
    boxkit_done(&result);
}

static void exactly_the_cap_is_not_truncated(void **state)
{
    RUN(.script = "head -c 4096 /dev/zero", .max_output = 4096);

    boxkit_assert_exit(&result, 0);
    assert_int_equal(result.out.size, 4096);
    assert_false(result.io.truncated_stdout);
    boxkit_done(&result);
}

static void a_flood_neither_blocks_nor_is_kept(void **state)
{
    RUN(.script = "head -c 300M /dev/zero; echo end >&2", .max_output = 1000);

    boxkit_assert_exit(&result, 0);
    assert_int_equal(result.io.total_stdout, 300 * BOXKIT_MIB);
    assert_string_equal(boxkit_err(&result), "end\n");
    boxkit_done(&result);
}

static void both_streams_at_once_do_not_deadlock(void **state)
{
    RUN(.script = "head -c 400000 /dev/zero >&2; head -c 400000 /dev/zero; "
                  "head -c 400000 /dev/zero >&2");

    boxkit_assert_exit(&result, 0);
    assert_int_equal(result.out.size, 400000);
    assert_int_equal(result.err.size, 800000);
    boxkit_done(&result);
}

static void assert_stopped(const struct boxkit_result *result, enum box_stop stop)
{
    assert_int_equal(result->stop, stop);
    assert_true(result->outcome.gone);
    assert_true(result->run_ms < SOON_MS);
    assert_true(result->end_ms < SOON_MS);
}

static void the_deadline_holds_and_output_so_far_is_kept(void **state)
{
    RUN(.script = "echo kept; sleep 1000", .timeout_s = 0.5);

    assert_stopped(&result, BOX_STOP_DEADLINE);
    assert_string_equal(boxkit_out(&result), "kept\n");
    assert_true(result.run_ms >= 500);
    boxkit_done(&result);
}

static void the_deadline_ends_a_busy_loop_and_its_cost_is_known(void **state)
{
    RUN(.script = "while :; do :; done", .timeout_s = 0.5);

    assert_stopped(&result, BOX_STOP_DEADLINE);
    assert_true(result.outcome.cpu_user_us + result.outcome.cpu_system_us > 10000);
    boxkit_done(&result);
}

static void a_trap_for_every_signal_is_no_help(void **state)
{
    RUN(.script = "trap '' TERM INT HUP QUIT USR1; while :; do sleep 100; done", .timeout_s = 0.5);

    assert_stopped(&result, BOX_STOP_DEADLINE);
    boxkit_done(&result);
}

static void a_stopped_program_ends_at_the_deadline(void **state)
{
    RUN(.script = "kill -STOP $$", .timeout_s = 0.5);

    assert_stopped(&result, BOX_STOP_DEADLINE);
    boxkit_done(&result);
}

static void a_program_that_writes_for_ever_ends_at_the_deadline(void **state)
{
    RUN(.script = "yes", .timeout_s = 0.5, .max_output = 100);

    assert_stopped(&result, BOX_STOP_DEADLINE);
    assert_true(result.io.truncated_stdout);
    assert_int_equal(result.out.size, 100);
    boxkit_done(&result);
}

static void a_storm_of_processes_is_bounded_and_ends(void **state)
{
    RUN(.script = "b(){ b|b& }; b; sleep 100", .timeout_s = 2, .limits = { .pids = 64 });

    assert_stopped(&result, BOX_STOP_DEADLINE);
    boxkit_done(&result);
}

static void the_number_of_processes_is_limited(void **state)
{
    static const char *const argv[] = { "python3", "-c",
                                        "import os, time\n"
                                        "count = 1\n"
                                        "try:\n"
                                        "    while count < 100:\n"
                                        "        if os.fork() == 0:\n"
                                        "            time.sleep(1000)\n"
                                        "        count += 1\n"
                                        "except BlockingIOError as error:\n"
                                        "    print(count, error.errno)\n",
                                        NULL };
    RUN(.argv = argv, .limits = { .pids = 16 });

    boxkit_assert_exit(&result, 0);
    assert_string_equal(boxkit_out(&result), "16 11\n"); /* EAGAIN */
    boxkit_done(&result);
}

static void a_background_child_that_holds_the_pipes_ends_too(void **state)
{
    RUN(.script = "sleep 1000 & disown; setsid sleep 1000 & echo done");

    boxkit_assert_exit(&result, 0);
    assert_true(result.run_ms < SOON_MS);
    assert_string_equal(boxkit_out(&result), "done\n");
    boxkit_done(&result);
}

/* Nobody waited for it. One of many tries is enough: on a busy machine its time may be over. */
static void a_child_that_is_about_to_end_may_do_so(void **state)
{
    bool said = false;

    (void)state;
    for (int tries = 0; !said && tries < 20; tries++) {
        RUN(.script = "{ sleep 0.02; echo last words; } & echo done");

        boxkit_assert_exit(&result, 0);
        said = strcmp(boxkit_out(&result), "done\nlast words\n") == 0;
        boxkit_done(&result);
    }
    assert_true(said);
}

static void a_program_that_closes_its_output_runs_on(void **state)
{
    RUN(.script = "exec >&- 2>&-; sleep 0.2; exit 9");

    boxkit_assert_exit(&result, 9);
    boxkit_done(&result);
}

static void orphans_are_reaped(void **state)
{
    RUN(.script = "for i in {1..200}; do (sleep 0.001 & exit 0); done; sleep 0.3; exec 2>&1;"
                  "grep -l '^State:.Z' /proc/[0-9]*/status | wc -l",
        .limits = { .pids = 32 });

    boxkit_assert_exit(&result, 0);
    assert_string_equal(boxkit_out(&result), "0\n");
    boxkit_done(&result);
}

static void *fire_later(void *cancel)
{
    const struct timespec pause = { .tv_nsec = 300 * 1000 * 1000 };

    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    cancel_fire(cancel, CANCEL_CLIENT_GONE);
    return NULL;
}

static void another_thread_can_cancel(void **state)
{
    struct cancel cancel;
    struct boxkit_result result;
    pthread_t thread;

    (void)state;
    assert_int_equal(cancel_init(&cancel, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, fire_later, &cancel), 0);
    boxkit_run(&(const struct boxkit_call){ .script = "sleep 1000", .cancel = &cancel }, &result);
    assert_stopped(&result, BOX_STOP_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    cancel_done(&cancel);
    boxkit_done(&result);
}

static void a_box_killed_from_outside_is_lost(void **state)
{
    static const struct boxkit_call call = { .script = "sleep 1000" };
    struct box *box = boxkit_start(&call);
    struct boxkit_result result;

    (void)state;
    boxkit_prepare(&call, &result);
    boxkit_launch(box, &call);
    assert_int_equal(kill(box_init_pid(box), SIGKILL), 0);
    result.stop = box_pump(box, &result.io);
    box_end(box, &result.io, &result.outcome);
    assert_int_equal(result.stop, BOX_STOP_LOST);
    assert_false(result.outcome.has_status);
    assert_true(result.outcome.gone);
    assert_true(result.outcome.evidence[0] != '\0');
    boxkit_done(&result);
}

/* In a process of its own: starts a box that sleeps, says its first process, waits to be killed. */
static void hold_a_box(int report)
{
    static const struct boxkit_call call = { .script = "sleep 1000" };
    struct box *box = boxkit_start(&call);
    pid_t init = box_init_pid(box);

    boxkit_launch(box, &call);
    if (write(report, &init, sizeof(init)) != (ssize_t)sizeof(init)) {
        _exit(1);
    }
    for (;;) {
        (void)pause();
    }
}

static void a_box_dies_with_its_daemon(void **state)
{
    int report[2];
    pid_t init = 0;
    pid_t daemon_pid;
    int64_t deadline;

    (void)state;
    assert_int_equal(pipe2(report, O_CLOEXEC), 0);
    daemon_pid = fork();
    if (daemon_pid == 0) {
        hold_a_box(report[1]);
    }
    assert_int_equal(read(report[0], &init, sizeof(init)), sizeof(init));
    assert_int_equal(kill(init, 0), 0);
    assert_int_equal(kill(daemon_pid, SIGKILL), 0);
    assert_int_equal(waitpid(daemon_pid, NULL, 0), daemon_pid);
    deadline = clock_deadline_after_s(20);
    for (;;) {
        char path[64];
        char *text;
        bool dead;

        /* A zombie that the host's PID 1 has not reaped yet is dead. */
        (void)snprintf(path, sizeof(path), "/proc/%d/stat", init);
        text = fd_read_file(path, 4096, NULL);
        dead = text == NULL || strstr(text, ") Z ") != NULL;
        free(text);
        if (dead) {
            break;
        }
        assert_false(clock_passed(deadline));
        (void)sched_yield();
    }
    (void)close(report[0]);
    (void)close(report[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_is_kept_up_to_the_cap),
        cmocka_unit_test(exactly_the_cap_is_not_truncated),
        cmocka_unit_test(a_flood_neither_blocks_nor_is_kept),
        cmocka_unit_test(both_streams_at_once_do_not_deadlock),
        cmocka_unit_test(the_deadline_holds_and_output_so_far_is_kept),
        cmocka_unit_test(the_deadline_ends_a_busy_loop_and_its_cost_is_known),
        cmocka_unit_test(a_trap_for_every_signal_is_no_help),
        cmocka_unit_test(a_stopped_program_ends_at_the_deadline),
        cmocka_unit_test(a_program_that_writes_for_ever_ends_at_the_deadline),
        cmocka_unit_test(a_storm_of_processes_is_bounded_and_ends),
        cmocka_unit_test(the_number_of_processes_is_limited),
        cmocka_unit_test(a_background_child_that_holds_the_pipes_ends_too),
        cmocka_unit_test(a_child_that_is_about_to_end_may_do_so),
        cmocka_unit_test(a_program_that_closes_its_output_runs_on),
        cmocka_unit_test(orphans_are_reaped),
        cmocka_unit_test(another_thread_can_cancel),
        cmocka_unit_test(a_box_killed_from_outside_is_lost),
        cmocka_unit_test(a_box_dies_with_its_daemon),
    };

    return cmocka_run_group_tests(tests, boxkit_begin, boxkit_end);
}
