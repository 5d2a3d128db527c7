/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/budget.h"

static void check_used(struct budget *budget, uint64_t used, uint64_t waiting)
{
    struct budget_stats stats;

    budget_stats(budget, &stats);
    assert_int_equal(stats.used, used);
    assert_int_equal(stats.waiting, waiting);
}

static void claims_stay_within_the_total(void **state)
{
    struct budget *budget = budget_new(100);
    struct budget_claim first = { .amount = 0 };
    struct budget_claim second = { .amount = 0 };

    (void)state;
    assert_true(budget_raise(budget, &first, 60));
    assert_true(budget_raise(budget, &first, 50)); /* it has more */
    assert_int_equal(first.amount, 60);
    assert_false(budget_raise(budget, &second, 41));
    check_used(budget, 60, 1);
    assert_true(budget_raise(budget, &second, 40));
    check_used(budget, 100, 0);
    assert_false(budget_lower(budget, &first, 70)); /* it has less */
    assert_false(budget_lower(budget, &first, 10));
    check_used(budget, 50, 0);
    assert_false(budget_raise(budget, &first, UINT64_MAX));
    assert_true(budget_lower(budget, &second, 0));
    assert_false(budget_forget(budget, &first));
    check_used(budget, 10, 0);
    budget_free(budget);
    budget_free(NULL);
}

/* Small claims come and go; one is always there. */
static int passes(struct budget *budget, struct budget_claim *large, uint64_t amount)
{
    struct budget_claim small[2] = { { .amount = 0 } };
    int count = 0;

    assert_true(budget_raise(budget, &small[0], 30));
    while (count < 1000 && !budget_raise(budget, large, amount)) {
        if (!budget_raise(budget, &small[(count + 1) % 2], 30)) {
            break;
        }
        (void)budget_lower(budget, &small[count % 2], 0);
        count++;
    }
    for (size_t i = 0; i < 2; i++) {
        (void)budget_forget(budget, &small[i]);
        (void)budget_lower(budget, &small[i], 0);
    }
    return count;
}

static void a_large_claim_is_not_passed_for_ever(void **state)
{
    struct budget *budget = budget_new(100);
    struct budget_claim large = { .amount = 0 };
    struct budget_claim other = { .amount = 0 };

    (void)state;
    assert_int_equal(passes(budget, &large, 90), BUDGET_PASSES);
    /* All is free, and none but the large one gets it. */
    assert_false(budget_raise(budget, &other, 1));
    assert_true(budget_raise(budget, &large, 90));
    assert_true(budget_raise(budget, &other, 10));
    budget_free(budget);
}

static void what_is_not_wanted_any_more_keeps_nothing(void **state)
{
    struct budget *budget = budget_new(100);
    struct budget_claim large = { .amount = 0 };
    struct budget_claim other = { .amount = 0 };

    (void)state;
    assert_int_equal(passes(budget, &large, 90), BUDGET_PASSES);
    assert_true(budget_forget(budget, &large));
    assert_true(budget_raise(budget, &other, 100));
    check_used(budget, 100, 0);
    budget_free(budget);
}

static void one_that_can_not_fit_beside_lasting_claims_holds_up_nobody(void **state)
{
    struct budget *budget = budget_new(100);
    struct budget_claim kernel = { .lasting = true };
    struct budget_claim large = { .amount = 0 };

    (void)state;
    assert_true(budget_raise(budget, &kernel, 20));
    assert_int_equal(passes(budget, &large, 90), 1000);
    assert_true(budget_lower(budget, &kernel, 10));
    assert_true(budget_raise(budget, &large, 90));
    budget_free(budget);
}

/* Told is what the smallest claim lacks that waits, or the one for which all is kept. */
static void what_is_missing_is_told(void **state)
{
    struct budget *budget = budget_new(100);
    struct budget_claim held = { .amount = 0 };
    struct budget_claim small = { .amount = 0 };
    struct budget_claim large = { .amount = 0 };

    (void)state;
    assert_int_equal(budget_missing(budget), 0);
    assert_true(budget_raise(budget, &held, 70));
    assert_int_equal(budget_missing(budget), 0); /* nobody waits */
    assert_false(budget_raise(budget, &large, 90));
    assert_int_equal(budget_missing(budget), 60);
    assert_false(budget_raise(budget, &small, 40));
    assert_int_equal(budget_missing(budget), 10);
    (void)budget_lower(budget, &held, 60);
    assert_int_equal(budget_missing(budget), 0); /* it fits, once it is asked again */
    assert_true(budget_raise(budget, &small, 40));
    assert_int_equal(budget_missing(budget), 90);
    (void)budget_lower(budget, &small, 0);
    for (int i = 0; i < BUDGET_PASSES; i++) {
        assert_true(budget_raise(budget, &small, 1));
        (void)budget_lower(budget, &small, 0);
    }
    assert_false(budget_raise(budget, &large, 90));
    assert_false(budget_raise(budget, &small, 45));
    assert_int_equal(budget_missing(budget), 50); /* of the large one, which comes first */
    assert_true(budget_forget(budget, &large));
    assert_int_equal(budget_missing(budget), 5);
    (void)budget_forget(budget, &small);
    assert_int_equal(budget_missing(budget), 0);
    budget_free(budget);
}

static void spares_take_what_nobody_waits_for(void **state)
{
    struct budget *budget = budget_new(100);
    struct budget_claim call = { .amount = 0 };
    struct budget_claim spare = { .amount = 0 };
    struct budget_claim second = { .amount = 0 };

    (void)state;
    assert_true(budget_raise_spare(budget, &spare, 30));
    assert_false(budget_raise_spare(budget, &second, 80));
    check_used(budget, 30, 0);
    assert_false(budget_raise(budget, &call, 80));
    assert_false(budget_raise_spare(budget, &second, 10));
    assert_true(budget_lower(budget, &spare, 0));
    assert_true(budget_raise(budget, &call, 80));
    assert_true(budget_raise_spare(budget, &second, 10));
    budget_free(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_stay_within_the_total),
        cmocka_unit_test(a_large_claim_is_not_passed_for_ever),
        cmocka_unit_test(what_is_not_wanted_any_more_keeps_nothing),
        cmocka_unit_test(one_that_can_not_fit_beside_lasting_claims_holds_up_nobody),
        cmocka_unit_test(what_is_missing_is_told),
        cmocka_unit_test(spares_take_what_nobody_waits_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
