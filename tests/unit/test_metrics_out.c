/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/metrics_out.h"

static struct buf text;
static struct metrics_out out;

static int begin(void **state)
{
    (void)state;
    text = BUF_INIT(4096);
    metrics_out_init(&out, &text);
    return 0;
}

static int end(void **state)
{
    (void)state;
    buf_done(&text);
    return 0;
}

static void values_of_labels_are_escaped(void **state)
{
    (void)state;
    metrics_out_family(&out, "a_total", "counter", "Help.");
    metrics_out_value(&out, (const char *const[]){ "b", "x\"y\\z\n", "c", "", NULL }, 3);
    assert_false(out.failed);
    assert_string_equal(text.data, "# HELP a_total Help.\n# TYPE a_total counter\n"
                                   "a_total{b=\"x\\\"y\\\\z\\n\",c=\"\"} 3\n");
}

static void histograms(void **state)
{
    const double bounds[] = { 0.5, HUGE_VAL };
    const uint64_t at_most[] = { 1, 4 };

    (void)state;
    metrics_out_family(&out, "h", "histogram", "Help.");
    metrics_out_histogram(&out, (const char *const[]){ "s", "t", NULL },
                          &(struct metrics_out_histogram){ bounds, at_most, 2, 1.25 });
    metrics_out_histogram(&out, NULL, &(struct metrics_out_histogram){ bounds, at_most, 2, 0 });
    assert_string_equal(text.data, "# HELP h Help.\n# TYPE h histogram\n"
                                   "h_bucket{s=\"t\",le=\"0.5\"} 1\n"
                                   "h_bucket{s=\"t\",le=\"+Inf\"} 4\n"
                                   "h_sum{s=\"t\"} 1.25\nh_count{s=\"t\"} 4\n"
                                   "h_bucket{le=\"0.5\"} 1\nh_bucket{le=\"+Inf\"} 4\n"
                                   "h_sum 0\nh_count 4\n");
}

static void a_full_buffer_is_told(void **state)
{
    (void)state;
    text.max = 40;
    metrics_out_single(&out, "a", "gauge", "Help that is longer than what there is room for.", 1);
    assert_true(out.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_of_labels_are_escaped, begin, end),
        cmocka_unit_test_setup_teardown(histograms, begin, end),
        cmocka_unit_test_setup_teardown(a_full_buffer_is_told, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
