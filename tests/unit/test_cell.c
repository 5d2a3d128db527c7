/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/cell/cell.h"

struct counting_sink {
    struct sink sink;
    size_t events;
    uint64_t last_value;
};

static void count(struct sink *sink, const struct sink_event *event)
{
    struct counting_sink *counting = (struct counting_sink *)sink;

    assert_int_equal(event->kind, SINK_RESULT);
    counting->events++;
    counting->last_value = event->value;
}

#define SMALL "\0\0\1\0\3a/b\0\0\0\1x"
#define SHORTENED "\2\0\1\0\3a/b\0\0\0\1x"
#define ADD(literal) cell_results_add(&results, &counting.sink, literal, sizeof(literal) - 1, NULL)

static void results_are_kept_and_told_in_order(void **state)
{
    struct cell_results results = CELL_RESULTS_INIT;
    struct counting_sink counting = { .sink = { .emit = count } };

    (void)state;
    assert_int_equal(ADD(SMALL), 0);
    assert_int_equal(ADD(SMALL), 0);
    assert_int_equal(results.count, 2);
    assert_int_equal(results.items[1].size, sizeof(SMALL) - 1);
    assert_memory_equal(results.items[1].data, SMALL, sizeof(SMALL) - 1);
    assert_int_equal(counting.events, 2);
    assert_int_equal(counting.last_value, 1);
    assert_false(results.truncated);
    assert_int_equal(ADD(SHORTENED), 0);
    assert_true(results.truncated);
    cell_results_done(&results);
    assert_int_equal(results.count, 0);
}

static void a_malformed_result_is_neither_kept_nor_told(void **state)
{
    struct cell_results results = CELL_RESULTS_INIT;
    struct counting_sink counting = { .sink = { .emit = count } };

    (void)state;
    assert_int_equal(ADD("\0\0\1\0\3a/b\0\0\0\1"), -1);
    assert_int_equal(results.count, 0);
    assert_int_equal(counting.events, 0);
}

static void results_beyond_the_count_are_dropped_and_flagged(void **state)
{
    struct cell_results results = CELL_RESULTS_INIT;
    struct counting_sink counting = { .sink = { .emit = count } };

    (void)state;
    for (size_t i = 0; i < CELL_RESULTS_MAX; i++) {
        assert_int_equal(ADD(SMALL), 0);
    }
    assert_false(results.truncated);
    assert_int_equal(ADD(SMALL), 0);
    assert_true(results.truncated);
    assert_int_equal(results.count, CELL_RESULTS_MAX);
    assert_int_equal(counting.events, CELL_RESULTS_MAX);
    cell_results_done(&results);
}

static void results_beyond_the_bytes_are_dropped_and_flagged(void **state)
{
    static const char head[] = "\0\0\1\0\3a/b\1\0\0\0";
    struct cell_results results = CELL_RESULTS_INIT;
    struct counting_sink counting = { .sink = { .emit = count } };
    size_t size = sizeof(head) - 1 + (1 << 24);
    CLEANUP_FREE char *large = alloc_zero(size, 1);

    (void)state;
    memcpy(large, head, sizeof(head) - 1);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(cell_results_add(&results, NULL, large, size, NULL), 0);
    }
    assert_int_equal(results.count, 3);
    assert_true(results.truncated);
    assert_int_equal(ADD(SMALL), 0);
    assert_int_equal(results.count, 4);
    cell_results_done(&results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_kept_and_told_in_order),
        cmocka_unit_test(a_malformed_result_is_neither_kept_nor_told),
        cmocka_unit_test(results_beyond_the_count_are_dropped_and_flagged),
        cmocka_unit_test(results_beyond_the_bytes_are_dropped_and_flagged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
