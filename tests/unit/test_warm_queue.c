/* SPDX-License-Identifier: Apache-2.0 */
/* Cells wait in the order they came, and can leave from any place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/warm_queue.h"

static void first_come_first_served(void **state)
{
    struct execution cells[3] = { { .warm = NULL } };
    struct warm_queue queue = { .count = 0 };

    (void)state;
    assert_null(warm_queue_take(&queue));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(warm_queue_position(&queue, &cells[i]), -1);
        warm_queue_put(&queue, &cells[i]);
        assert_int_equal(warm_queue_position(&queue, &cells[i]), i);
    }
    assert_int_equal(queue.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_equal(warm_queue_take(&queue), &cells[i]);
    }
    assert_null(warm_queue_take(&queue));
    assert_int_equal(queue.count, 0);
}

static void any_may_leave(void **state)
{
    (void)state;
    for (size_t gone = 0; gone < 3; gone++) {
        struct execution cells[4] = { { .warm = NULL } };
        struct warm_queue queue = { .count = 0 };

        for (size_t i = 0; i < 3; i++) {
            warm_queue_put(&queue, &cells[i]);
        }
        assert_true(warm_queue_remove(&queue, &cells[gone]));
        assert_false(warm_queue_remove(&queue, &cells[gone]));
        assert_false(warm_queue_remove(&queue, &cells[3]));
        assert_int_equal(queue.count, 2);
        warm_queue_put(&queue, &cells[3]);
        for (size_t i = 0; i < 4; i++) {
            if (i != gone) {
                assert_ptr_equal(warm_queue_take(&queue), &cells[i]);
            }
        }
        assert_null(queue.first);
        assert_null(queue.last);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_come_first_served),
        cmocka_unit_test(any_may_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
