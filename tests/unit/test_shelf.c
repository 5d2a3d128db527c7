/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/sandbox/shelf.h"
#include "lib/sandbox/spare.h"

#define LEAST 2
#define MOST 4

static struct shelf make_shelf(void)
{
    return (struct shelf){ .target = LEAST, .target_least = LEAST, .target_most = MOST };
}

/* Stands so many spares on a shelf, the last one in front. */
static void fill(struct shelf *shelf, struct spare *spares, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        spares[i].next = shelf->first;
        shelf->first = &spares[i];
        shelf->count++;
    }
    shelf->filled = true;
}

static void the_first_call_of_a_shape_is_no_miss(void **state)
{
    struct shelf shelf = make_shelf();

    (void)state;
    shelf_missed(&shelf);
    assert_int_equal(shelf.target, LEAST);
}

static void a_shelf_found_empty_keeps_more_up_to_a_bound(void **state)
{
    struct shelf shelf = make_shelf();

    (void)state;
    shelf.filled = true;
    for (size_t i = 1; i <= 5; i++) {
        shelf_missed(&shelf);
        assert_int_equal(shelf.target, LEAST + i < MOST ? LEAST + i : MOST);
    }
}

static void a_call_that_its_spares_do_not_suit_changes_nothing(void **state)
{
    struct shelf shelf = make_shelf();
    struct spare spare = { 0 };

    (void)state;
    fill(&shelf, &spare, 1);
    shelf_missed(&shelf);
    assert_int_equal(shelf.target, LEAST);
}

static void shrinking_keeps_the_newest(void **state)
{
    struct shelf shelf = make_shelf();
    struct spare spares[MOST] = { { 0 } };
    struct spare *surplus;

    (void)state;
    shelf.target = MOST;
    fill(&shelf, spares, MOST);
    surplus = shelf_shrink(&shelf);
    assert_int_equal(shelf.target, LEAST);
    assert_int_equal(shelf.count, LEAST);
    assert_ptr_equal(shelf.first, &spares[3]);
    assert_ptr_equal(shelf.first->next, &spares[2]);
    assert_null(spares[2].next);
    assert_ptr_equal(surplus, &spares[1]);
    assert_ptr_equal(surplus->next, &spares[0]);
    assert_null(spares[0].next);
}

static void shrinking_what_is_not_full_takes_nothing(void **state)
{
    struct shelf shelf = make_shelf();
    struct spare spare = { 0 };

    (void)state;
    shelf.target = MOST;
    assert_null(shelf_shrink(&shelf));
    assert_int_equal(shelf.count, 0);
    fill(&shelf, &spare, 1);
    assert_null(shelf_shrink(&shelf));
    assert_int_equal(shelf.count, 1);
    assert_ptr_equal(shelf.first, &spare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_call_of_a_shape_is_no_miss),
        cmocka_unit_test(a_shelf_found_empty_keeps_more_up_to_a_bound),
        cmocka_unit_test(a_call_that_its_spares_do_not_suit_changes_nothing),
        cmocka_unit_test(shrinking_keeps_the_newest),
        cmocka_unit_test(shrinking_what_is_not_full_takes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
