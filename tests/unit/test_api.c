/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/api.h"
#include "lib/base/alloc.h"
#include "lib/base/container.h"

/* A hook that counts, for the test, what became of it. */
struct counting {
    struct api_hook hook;
    atomic_int *fired;
    atomic_int *freed;
};

static void counting_free(struct api_hook *hook)
{
    struct counting *counting = CONTAINER_OF(hook, struct counting, hook);

    (void)atomic_fetch_add(counting->freed, 1);
    free(counting);
}

static void counting_fire(struct api_hook *hook, enum cancel_reason reason)
{
    assert_int_equal(reason, CANCEL_CLIENT_GONE);
    (void)atomic_fetch_add(CONTAINER_OF(hook, struct counting, hook)->fired, 1);
    counting_free(hook);
}

static struct api_hook *counting_new(atomic_int *fired, atomic_int *freed)
{
    struct counting *counting = alloc_zero(1, sizeof(*counting));

    *counting = (struct counting){ .hook = { counting_fire }, .fired = fired, .freed = freed };
    return &counting->hook;
}

static void hooks_fire_once(void **state)
{
    struct api_call call = { 0 };
    atomic_int fired = 0;
    atomic_int freed = 0;

    (void)state;
    assert_int_equal(cancel_init(&call.cancel, NULL), 0);
    api_call_watch(&call, counting_new(&fired, &freed));
    api_call_cancel(&call, CANCEL_CLIENT_GONE);
    api_call_cancel(&call, CANCEL_SHUTDOWN);
    assert_int_equal(fired, 1);
    assert_null(api_call_unwatch(&call));
    cancel_done(&call.cancel);
}

static void hooks_fire_when_it_was_cancelled_before(void **state)
{
    struct api_call call = { 0 };
    atomic_int fired = 0;
    atomic_int freed = 0;

    (void)state;
    assert_int_equal(cancel_init(&call.cancel, NULL), 0);
    api_call_cancel(&call, CANCEL_CLIENT_GONE);
    api_call_watch(&call, counting_new(&fired, &freed));
    assert_int_equal(fired, 1);
    assert_int_equal(freed, 1);
    cancel_done(&call.cancel);
}

static void hooks_taken_back_do_not_fire(void **state)
{
    struct api_call call = { 0 };
    atomic_int fired = 0;
    atomic_int freed = 0;

    (void)state;
    assert_int_equal(cancel_init(&call.cancel, NULL), 0);
    api_call_watch(&call, counting_new(&fired, &freed));
    counting_free(api_call_unwatch(&call));
    api_call_cancel(&call, CANCEL_CLIENT_GONE);
    assert_int_equal(fired, 0);
    assert_int_equal(freed, 1);
    cancel_done(&call.cancel);
}

static void *cancel_thread(void *argument)
{
    api_call_cancel(argument, CANCEL_CLIENT_GONE);
    return NULL;
}

/* Whoever wins, the hook has one owner. */
static void a_race_leaves_one_owner(void **state)
{
    (void)state;
    for (int round = 0; round < 500; round++) {
        struct api_call call = { 0 };
        struct api_hook *left = NULL;
        atomic_int fired = 0;
        atomic_int freed = 0;
        pthread_t thread;

        assert_int_equal(cancel_init(&call.cancel, NULL), 0);
        assert_int_equal(pthread_create(&thread, NULL, cancel_thread, &call), 0);
        api_call_watch(&call, counting_new(&fired, &freed));
        left = api_call_unwatch(&call);
        if (left != NULL) {
            counting_free(left);
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(freed, 1);
        assert_int_equal(fired, left == NULL ? 1 : 0);
        cancel_done(&call.cancel);
    }
}

static void headers_are_found_whatever_their_case(void **state)
{
    static const struct api_header headers[] = { { "Accept", "a" }, { "accept", "b" } };
    const struct api_call call = { .headers = headers, .header_count = 2 };

    (void)state;
    assert_string_equal(api_call_header(&call, "ACCEPT"), "a");
    assert_null(api_call_header(&call, "Range"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooks_fire_once),
        cmocka_unit_test(hooks_fire_when_it_was_cancelled_before),
        cmocka_unit_test(hooks_taken_back_do_not_fire),
        cmocka_unit_test(a_race_leaves_one_owner),
        cmocka_unit_test(headers_are_found_whatever_their_case),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
