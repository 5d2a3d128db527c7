/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/resource.h"
#include "api/wait.h"
#include "lib/base/alarm.h"
#include "lib/base/clock.h"

/* An execution that ends when the test says so, in place of the sandbox's. */
struct execution {
    struct execution_waiter *waiter;
    int references;
    int cancels;
};

void execution_wait(struct execution *execution, struct execution_waiter *waiter)
{
    execution->waiter = waiter;
}

bool execution_forget(struct execution *execution, struct execution_waiter *waiter)
{
    const bool found = execution->waiter == waiter;

    execution->waiter = found ? NULL : execution->waiter;
    return found;
}

void execution_cancel(struct execution *execution, enum cancel_reason reason)
{
    (void)reason;
    execution->cancels++;
}

void execution_unref(struct execution *execution)
{
    execution->references--;
}

/* A client that leaves when the test says so, in place of the server's. */
static bool has_left;

static void leave(struct api_call *call)
{
    struct api_hook *hook = api_call_unwatch(call);

    has_left = true;
    if (hook != NULL) {
        hook->fire(hook, CANCEL_CLIENT_GONE);
    }
}

void api_call_watch(struct api_call *call, struct api_hook *hook)
{
    atomic_store(&call->hook, hook);
    if (has_left) {
        leave(call);
    }
}

struct api_hook *api_call_unwatch(struct api_call *call)
{
    return atomic_exchange(&call->hook, NULL);
}

static int answers[WAIT_ALONE + 1];

static void answer(struct api_call *call, struct execution *execution, enum wait_end end)
{
    (void)call;
    (void)execution;
    answers[end]++;
}

struct fixture {
    struct api api;
    struct api_call call;
    struct execution execution;
    struct wait_plan plan;
};

static void setup(struct fixture *fixture, int64_t deadline)
{
    *fixture = (struct fixture){ .execution.references = 1 };
    fixture->api.alarm = alarm_new(NULL);
    assert_non_null(fixture->api.alarm);
    fixture->call.api = &fixture->api;
    atomic_init(&fixture->call.hook, NULL);
    fixture->plan = (struct wait_plan){ .execution = &fixture->execution,
                                        .deadline = deadline,
                                        .answer = answer };
    has_left = false;
    for (int i = 0; i <= WAIT_ALONE; i++) {
        answers[i] = 0;
    }
}

/* Nothing is kept of the wait, by whomever, and it was answered once. */
static void assert_over(struct fixture *fixture, enum wait_end end)
{
    for (int i = 0; i <= WAIT_ALONE; i++) {
        assert_int_equal(answers[i], i == (int)end ? 1 : 0);
    }
    assert_int_equal(fixture->execution.references, 0);
    assert_null(fixture->execution.waiter);
    assert_null(atomic_load(&fixture->call.hook));
    alarm_free(fixture->api.alarm);
}

static void a_client_that_left_before_the_wait(void **state)
{
    struct fixture fixture;

    (void)state;
    setup(&fixture, clock_deadline_after_s(3600));
    leave(&fixture.call);
    wait_begin(&fixture.call, &fixture.plan);
    assert_over(&fixture, WAIT_ALONE);
    assert_int_equal(fixture.execution.cancels, 0);
}

static void a_client_that_leaves_during_it(void **state)
{
    struct fixture fixture;

    (void)state;
    setup(&fixture, clock_deadline_after_s(3600));
    wait_begin(&fixture.call, &fixture.plan);
    assert_int_equal(fixture.execution.references, 1);
    leave(&fixture.call);
    assert_over(&fixture, WAIT_ALONE);
}

static void an_execution_that_ends(void **state)
{
    struct fixture fixture;
    struct execution_waiter *waiter;

    (void)state;
    setup(&fixture, clock_deadline_after_s(3600));
    wait_begin(&fixture.call, &fixture.plan);
    waiter = fixture.execution.waiter;
    fixture.execution.waiter = NULL;
    waiter->done(waiter);
    assert_over(&fixture, WAIT_DONE);
}

/* Its box ends first, and the call is answered with that. */
static void a_client_whose_execution_goes_with_it(void **state)
{
    struct fixture fixture;
    struct execution_waiter *waiter;

    (void)state;
    setup(&fixture, CLOCK_NEVER);
    fixture.plan.cancels = true;
    leave(&fixture.call);
    wait_begin(&fixture.call, &fixture.plan);
    assert_int_equal(fixture.execution.cancels, 1);
    waiter = fixture.execution.waiter;
    fixture.execution.waiter = NULL;
    waiter->done(waiter);
    assert_over(&fixture, WAIT_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_left_before_the_wait),
        cmocka_unit_test(a_client_that_leaves_during_it),
        cmocka_unit_test(an_execution_that_ends),
        cmocka_unit_test(a_client_whose_execution_goes_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
