/* SPDX-License-Identifier: Apache-2.0 */
/* Why a kernel died is told by what was seen, the strongest evidence first. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/sandbox/warm_box.h"

/* wait(2) form of an exit code and of a signal. */
#define EXITED(code) ((code) << 8)
#define SIGNALED(number) (number)

static void expect(const struct box_outcome *outcome, const struct warm_death *death,
                   const char *wanted)
{
    char reason[WARM_BOX_REASON_SIZE];

    warm_box_reason(outcome, death, reason);
    assert_memory_equal(reason, wanted, strlen(wanted));
}

static void statuses_and_signals(void **state)
{
    const struct warm_death exited = { .stop = BOX_STOP_EXITED };
    const struct box_outcome three = { .has_status = true, .wait_status = EXITED(3) };
    const struct box_outcome zero = { .has_status = true, .wait_status = EXITED(0) };
    const struct box_outcome segv = { .has_status = true, .wait_status = SIGNALED(SIGSEGV) };
    const struct box_outcome killed = { .has_status = true, .wait_status = SIGNALED(SIGKILL) };
    const struct box_outcome nothing = { .has_status = false };

    (void)state;
    expect(&three, &exited, "exit status 3");
    expect(&zero, &exited, "exit status 0");
    expect(&segv, &exited, "signal 11 (SEGV)");
    expect(&killed, &exited, "signal 9 (KILL)");
    expect(&nothing, &(struct warm_death){ .stop = BOX_STOP_LOST }, "lost: ");
}

static void what_kernd_did(void **state)
{
    const struct box_outcome killed = { .has_status = true, .wait_status = SIGNALED(SIGKILL) };

    (void)state;
    expect(&killed, &(struct warm_death){ .stop = BOX_STOP_DEADLINE }, "timeout: a cell went on");
    expect(&killed, &(struct warm_death){ .stop = BOX_STOP_DEADLINE, .at_once = true },
           "timeout: the kernel was killed with its cell");
    expect(&killed, &(struct warm_death){ .stop = BOX_STOP_CANCELLED }, "cancelled: a cell went");
}

static void evidence_comes_first(void **state)
{
    const struct warm_death deadline = { .stop = BOX_STOP_DEADLINE };
    const struct box_outcome oom = { .has_status = true,
                                     .wait_status = SIGNALED(SIGKILL),
                                     .oom = true,
                                     .evidence = "cgroup: oom_kill 1" };
    const struct box_outcome blocked = { .has_status = true,
                                         .wait_status = SIGNALED(SIGSYS),
                                         .escape_blocked = true,
                                         .evidence = "died of SIGSYS" };

    (void)state;
    expect(&oom, &deadline, "oom: cgroup: oom_kill 1");
    expect(&blocked, &(struct warm_death){ .stop = BOX_STOP_EXITED }, "escape_blocked: died of");
}

/* The driver's end of the connection may close a moment before its death is told. */
static void a_lost_connection(void **state)
{
    const struct warm_death lost = { .stop = BOX_STOP_PEER_LOST };
    const struct warm_death nonsense = { .stop = BOX_STOP_PEER_LOST, .nonsense = true };
    const struct box_outcome segv = { .has_status = true, .wait_status = SIGNALED(SIGSEGV) };
    const struct box_outcome killed = { .has_status = true, .wait_status = SIGNALED(SIGKILL) };

    (void)state;
    expect(&segv, &lost, "signal 11");
    expect(&killed, &lost, "protocol: the connection");
    expect(&segv, &nonsense, "protocol: the interpreter's side");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_and_signals),
        cmocka_unit_test(what_kernd_did),
        cmocka_unit_test(evidence_comes_first),
        cmocka_unit_test(a_lost_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
