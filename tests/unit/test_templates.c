/* SPDX-License-Identifier: Apache-2.0 */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/box/box_internal.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/templates_internal.h"

/* The one thread of the lane is taken, so that what is ordered stays as it was ordered. */
struct taken {
    struct pool_job job;
    sem_t runs;
    sem_t end;
};

struct fixture {
    struct sandbox sandbox;
    struct templates templates;
    struct taken taken;
    struct template *old;
};

static void take_thread(struct pool_job *job)
{
    struct taken *taken = CONTAINER_OF(job, struct taken, job);

    (void)sem_post(&taken->runs);
    (void)sem_wait(&taken->end);
}

static void drop(struct pool_job *job)
{
    (void)job;
}

static int set_up(void **state)
{
    struct fixture *fixture = alloc_zero(1, sizeof(*fixture));
    struct template *old = alloc_zero(1, sizeof(*old));
    struct err err = ERR_INIT;

    fixture->sandbox.budget = budget_new(UINT64_C(1) << 30);
    fixture->templates.sandbox = &fixture->sandbox;
    fixture->templates.lane = pool_new("template", 1, 16, &err);
    assert_non_null(fixture->templates.lane);
    (void)sem_init(&fixture->taken.runs, 0, 0);
    (void)sem_init(&fixture->taken.end, 0, 0);
    fixture->taken.job = (struct pool_job){ .run = take_thread, .drop = drop };
    assert_int_equal(pool_submit(fixture->templates.lane, &fixture->taken.job, &err), 0);
    (void)sem_wait(&fixture->taken.runs);
    *old = (struct template){ .templates = &fixture->templates,
                              .state = TEMPLATE_UP,
                              .kind = { .cpus = 1 } };
    old->born_ns = old->used_ns = clock_mono_ns();
    fixture->templates.first = fixture->old = old;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    for (struct template *at = fixture->templates.first; at != NULL; at = at->next) {
        (void)pool_withdraw(fixture->templates.lane,
                            &at->job); /* there is nothing to boot it with */
    }
    (void)sem_post(&fixture->taken.end);
    pool_free(fixture->templates.lane);
    while (fixture->templates.first != NULL) {
        struct template *first = fixture->templates.first;

        fixture->templates.first = first->next;
        templates_boot_free(first);
    }
    budget_free(fixture->sandbox.budget);
    free(fixture);
    return 0;
}

static size_t count(const struct fixture *fixture, enum template_state wanted)
{
    size_t found = 0;

    for (const struct template *at = fixture->templates.first; at != NULL; at = at->next) {
        found += at->state == wanted ? 1 : 0;
    }
    return found;
}

static void one_that_is_young_has_no_successor(void **state)
{
    struct fixture *fixture = *state;

    fixture->old->forks = TEMPLATES_FORKS_MAX - 1;
    templates_boot_renew(fixture->old);
    assert_int_equal(fixture->old->state, TEMPLATE_UP);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 0);
}

static void one_that_made_its_boxes_has_one_successor(void **state)
{
    struct fixture *fixture = *state;

    fixture->old->forks = TEMPLATES_FORKS_MAX;
    templates_boot_renew(fixture->old);
    templates_boot_renew(fixture->old);
    assert_int_equal(fixture->old->state, TEMPLATE_STALE);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 1);
}

static void so_has_one_that_is_old(void **state)
{
    struct fixture *fixture = *state;

    fixture->old->born_ns -= 901 * CLOCK_NS_PER_S;
    templates_boot_renew(fixture->old);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 1);
}

static void one_of_other_calls_is_none(void **state)
{
    struct fixture *fixture = *state;

    templates_boot(&fixture->templates, &(struct templates_kind){ .cpus = 2 });
    fixture->old->forks = TEMPLATES_FORKS_MAX;
    templates_boot_renew(fixture->old);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 2);
}

static void where_memory_is_short_it_is_ordered_later(void **state)
{
    struct fixture *fixture = *state;
    struct budget_claim all = { 0 };

    assert_true(budget_raise(fixture->sandbox.budget, &all, UINT64_C(1) << 30));
    fixture->old->forks = TEMPLATES_FORKS_MAX;
    templates_boot_renew(fixture->old);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 0);
    assert_int_equal(fixture->old->state, TEMPLATE_STALE);
    (void)budget_lower(fixture->sandbox.budget, &all, 0);
    templates_boot_renew(fixture->old);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 1);
}

static void one_that_failed_is_ordered_again(void **state)
{
    struct fixture *fixture = *state;

    fixture->old->forks = TEMPLATES_FORKS_MAX;
    templates_boot_renew(fixture->old);
    fixture->templates.first->state = TEMPLATE_RETIRED;
    templates_boot_failed(&fixture->templates, "of a test");
    templates_boot_renew(fixture->old);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 1);
}

/* Of places that a caller named, once is not often enough: most such calls are not repeated. */
static void one_of_a_callers_places_is_for_the_second_call(void **state)
{
    struct fixture *fixture = *state;
    char place[] = "/srv/0";
    struct templates_kind kind = { .cpus = 1, .workspace = place, .inode = 7 };

    templates_boot(&fixture->templates, &kind);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 0);
    kind.inode = 8; /* another directory in its place */
    templates_boot(&fixture->templates, &kind);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 0);
    kind.inode = 7;
    templates_boot(&fixture->templates, &kind);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 1);
    /* What was wanted once is forgotten when much else was. */
    for (int i = 0; i < 50; i++) {
        kind.inode = 100 + (uint64_t)i;
        templates_boot(&fixture->templates, &kind);
    }
    assert_int_equal(count(fixture, TEMPLATE_WANTED), 16);
    kind.inode = 100;
    templates_boot(&fixture->templates, &kind);
    kind.inode = 149;
    templates_boot(&fixture->templates, &kind);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 2);
}

/* No more than eight: one that nobody used for a while makes way, and no other. */
static void one_that_is_unused_makes_way(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 2; i <= 8; i++) {
        templates_boot(&fixture->templates, &(struct templates_kind){ .cpus = i });
    }
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 7);
    templates_boot(&fixture->templates, &(struct templates_kind){ .cpus = 9 });
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 7);
    assert_int_equal(fixture->old->state, TEMPLATE_UP);
    fixture->old->used_ns -= 60 * CLOCK_NS_PER_S;
    templates_boot(&fixture->templates, &(struct templates_kind){ .cpus = 9 });
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 8);
    assert_int_equal(fixture->old->state, TEMPLATE_RETIRED);
}

static bool has_ended(int connection)
{
    char byte;

    return recv(connection, &byte, 1, MSG_DONTWAIT) == 0;
}

/*
 * Calls that have chosen a template, and have not yet sent it their orders, when its successor
 * comes up: it hears both orders before it hears that no more will come.
 */
static void one_that_is_replaced_still_hears_its_orders(void **state)
{
    struct fixture *fixture = *state;
    struct box box = { .driver = -1 };
    int ends[2];
    char heard[16];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    box.driver = ends[0];
    fixture->old->box = &box;
    fixture->old->users = 2;
    templates_boot_retire(fixture->old);
    assert_int_equal(send(box.driver, "one", 3, MSG_NOSIGNAL), 3);
    fixture->old->users--;
    templates_boot_let_go(fixture->old);
    assert_int_equal(send(box.driver, "two", 3, MSG_NOSIGNAL), 3);
    assert_int_equal(recv(ends[1], heard, sizeof(heard), MSG_DONTWAIT), 6);
    assert_false(has_ended(ends[1]));
    fixture->old->users--;
    templates_boot_let_go(fixture->old);
    assert_true(has_ended(ends[1]));
    fixture->old->box = NULL;
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_is_young_has_no_successor, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_made_its_boxes_has_one_successor, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(so_has_one_that_is_old, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_of_other_calls_is_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(where_memory_is_short_it_is_ordered_later, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_that_failed_is_ordered_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_of_a_callers_places_is_for_the_second_call, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_unused_makes_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_replaced_still_hears_its_orders, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
