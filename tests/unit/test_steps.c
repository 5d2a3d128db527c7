/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/steps.h"

#define THREADS 4
#define ROUNDS 1000

static void a_mark_is_the_time_since_the_one_before(void **state)
{
    int64_t began_ns = clock_mono_ns() - CLOCK_NS_PER_S;
    struct steps steps;
    int64_t all_ns;

    (void)state;
    steps_begin(&steps, began_ns);
    steps_mark(&steps, STEP_ACCEPT);
    steps_mark(&steps, STEP_RUN);
    steps_mark(&steps, STEP_RUN);
    assert_true(steps.spent_ns[STEP_ACCEPT] >= CLOCK_NS_PER_S);
    all_ns = steps.spent_ns[STEP_ACCEPT] + steps.spent_ns[STEP_RUN];
    assert_true(all_ns == steps.last_ns - began_ns);
    assert_true(steps.spent_ns[STEP_REAP] == 0);
}

static void parts_of_a_call_are_joined(void **state)
{
    struct steps call = { .last_ns = 10, .spent_ns = { [STEP_PARSE] = 4 } };
    const struct steps part = { .last_ns = 30, .spent_ns = { [STEP_PARSE] = 1, [STEP_RUN] = 9 } };
    const struct steps early = { .last_ns = 20 };

    (void)state;
    steps_join(&call, &part);
    steps_join(&call, &early);
    assert_true(call.spent_ns[STEP_PARSE] == 5 && call.spent_ns[STEP_RUN] == 9);
    assert_true(call.last_ns == 30);
}

static void the_header_names_what_was_marked_in_order(void **state)
{
    const struct steps steps = { .spent_ns = { [STEP_RUN] = 1234567, [STEP_ACCEPT] = 21000 } };
    const struct steps none = { .last_ns = 1 };
    CLEANUP_BUF struct buf out = BUF_INIT(100);
    CLEANUP_BUF struct buf small = BUF_INIT(10);

    (void)state;
    assert_int_equal(steps_put_header(&none, &out), 0);
    assert_int_equal(out.size, 0);
    assert_int_equal(steps_put_header(&steps, &out), 0);
    assert_string_equal(out.data, "accept;dur=0.021, run;dur=1.235");
    assert_int_equal(steps_put_header(&steps, &small), -1);
}

static void check_row(void *context, const struct steps_row *row)
{
    size_t *seen = context;

    assert_string_equal(row->name, steps_name((enum step) * seen));
    assert_true(row->bounds_s[0] > 15e-6 && row->bounds_s[0] < 17e-6);
    assert_true(isinf(row->bounds_s[STEPS_BUCKETS - 1]));
    assert_true(row->at_most[STEPS_BUCKETS - 1] == row->count);
    for (size_t i = 1; i < STEPS_BUCKETS; i++) {
        assert_true(row->bounds_s[i] > row->bounds_s[i - 1]);
        assert_true(row->at_most[i] >= row->at_most[i - 1]);
    }
    if (*seen == STEP_RUN) {
        assert_true(row->count == 4);
        assert_true(row->at_most[0] == 2 && row->at_most[1] == 3);
        assert_true(row->at_most[STEPS_BUCKETS - 2] == 3);
        assert_true(row->sum_s > 100 && row->sum_s < 101);
    } else {
        assert_true(row->count == 0);
    }
    (*seen)++;
}

static void totals_fall_into_their_buckets(void **state)
{
    static struct steps_totals totals;
    const int64_t spent_ns[] = { 1, 16000, 16001, 100 * CLOCK_NS_PER_S };
    size_t seen = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(spent_ns) / sizeof(spent_ns[0]); i++) {
        struct steps steps = { .spent_ns = { [STEP_RUN] = spent_ns[i] } };

        steps_add(&totals, &steps);
    }
    steps_each(&totals, check_row, &seen);
    assert_int_equal(seen, STEPS);
}

static void quantiles_lie_on_a_line_through_their_bucket(void **state)
{
    struct steps_row row = { .count = 0 };

    (void)state;
    assert_true(steps_quantile_s(&row, 0.5) < 0);
    for (size_t i = 0; i < STEPS_BUCKETS; i++) {
        row.bounds_s[i] = (double)(1 << i);
        row.at_most[i] = i == 0 ? 0 : i < 3 ? 10 : 20;
    }
    row.count = row.at_most[STEPS_BUCKETS - 1] = 21; /* the last one is above all bounds */
    assert_true(fabs(steps_quantile_s(&row, 0) - 1) < 1e-9);
    assert_true(fabs(steps_quantile_s(&row, 5.0 / 21) - 1.5) < 1e-9);
    assert_true(fabs(steps_quantile_s(&row, 10.0 / 21) - 2) < 1e-9);
    assert_true(fabs(steps_quantile_s(&row, 15.0 / 21) - 6) < 1e-9);
    assert_true(fabs(steps_quantile_s(&row, 1) - row.bounds_s[STEPS_BUCKETS - 2]) < 1e-9);
}

static struct steps_totals shared;

static void *add_many(void *context)
{
    const struct steps steps = { .spent_ns = { [STEP_QUEUE] = 1000 } };

    (void)context;
    for (int i = 0; i < ROUNDS; i++) {
        steps_add(&shared, &steps);
    }
    return NULL;
}

static void keep_queue(void *context, const struct steps_row *row)
{
    if (strcmp(row->name, "queue") == 0) {
        *(struct steps_row *)context = *row;
    }
}

static void threads_add_without_losing_any(void **state)
{
    pthread_t threads[THREADS];
    struct steps_row row = { .count = 0 };

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    steps_each(&shared, keep_queue, &row);
    assert_true(row.count == THREADS * ROUNDS && row.at_most[0] == THREADS * ROUNDS);
    assert_true(fabs(row.sum_s - THREADS * ROUNDS * 1e-6) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mark_is_the_time_since_the_one_before),
        cmocka_unit_test(parts_of_a_call_are_joined),
        cmocka_unit_test(the_header_names_what_was_marked_in_order),
        cmocka_unit_test(totals_fall_into_their_buckets),
        cmocka_unit_test(quantiles_lie_on_a_line_through_their_bucket),
        cmocka_unit_test(threads_add_without_losing_any),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
