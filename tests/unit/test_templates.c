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
#include "lib/sandbox/reserve.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/spares.h"
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
    fixture->sandbox.pool = pool_new("run", 1, 16, &err);
    assert_non_null(fixture->sandbox.pool);
    fixture->sandbox.background = pool_new("background", 1, 16, &err);
    assert_non_null(fixture->sandbox.background);
    fixture->templates.max = 8;
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
    templates_note_age(&fixture->templates, INT64_MAX);
    pool_free(fixture->sandbox.pool);
    pool_free(fixture->sandbox.background);
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
    templates_boot_failed(&fixture->templates, &fixture->old->kind, "of a test");
    templates_boot_renew(fixture->old);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 1);
}

/* Of places that a caller named, once is not often enough: most such calls are not repeated. */
static void one_of_a_callers_places_is_for_the_second_call(void **state)
{
    struct fixture *fixture = *state;
    char place[] = "/srv/0";
    struct templates_kind kind = { .cpus = 1, .workspace = place, .inode = 7 };
    int notes = 0;

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
    for (const struct templates_note *at = fixture->templates.notes; at != NULL; at = at->next) {
        notes++;
    }
    assert_int_equal(notes, 16);
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

/* Nobody keeps all others from having one by calls of many kinds. */
static void one_makes_way_for_the_common_kind(void **state)
{
    struct fixture *fixture = *state;
    struct templates_kind kind = { .cpus = 1.5 };

    fixture->sandbox.defaults.cpus = 1.5;
    for (int i = 2; i <= 8; i++) {
        templates_boot(&fixture->templates, &(struct templates_kind){ .cpus = i });
    }
    kind.inode = kind.device = 1;
    kind.workspace = alloc_text("/srv/0");
    templates_boot(&fixture->templates, &kind);
    templates_boot(&fixture->templates, &kind);
    assert_int_equal(fixture->old->state, TEMPLATE_UP);
    templates_kind_done(&kind);
    templates_boot(&fixture->templates, &(struct templates_kind){ .cpus = 1.5 });
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

/* Told from the others by its kind; used so long ago. */
static struct template *add_up(struct fixture *fixture, double cpus, int64_t unused_s)
{
    struct template *template = alloc_zero(1, sizeof(*template));

    *template = (struct template){ .templates = &fixture->templates,
                                   .state = TEMPLATE_UP,
                                   .kind = { .cpus = cpus },
                                   .next = fixture->templates.first };
    template->born_ns = clock_mono_ns();
    template->used_ns = template->born_ns - unused_s *CLOCK_NS_PER_S;
    assert_true(budget_raise_spare(fixture->sandbox.budget, &template->memory, TEMPLATES_BYTES));
    fixture->templates.first = template;
    return template;
}

static bool is_there(const struct fixture *fixture, double cpus)
{
    for (const struct template *at = fixture->templates.first; at != NULL; at = at->next) {
        if (at->kind.cpus >= cpus && at->kind.cpus <= cpus) {
            return at->state == TEMPLATE_UP;
        }
    }
    return false;
}

static void check_there(const struct fixture *fixture, bool second, bool third, bool fourth)
{
    assert_int_equal(is_there(fixture, 2), second);
    assert_int_equal(is_there(fixture, 3), third);
    assert_int_equal(is_there(fixture, 4), fourth);
    assert_true(is_there(fixture, 5)); /* see each test */
}

/*
 * The second was used just now, the third a while ago, both have no box; the fourth, not used for
 * longest, has one, so it comes behind them; the fifth has boxes and is asked for more.
 */
static struct template *add_four(struct fixture *fixture)
{
    struct template *fourth;

    fixture->old->memory.amount = 0; /* it holds nothing, so it has nothing to give */
    add_up(fixture, 2, 0);
    add_up(fixture, 3, 20);
    fourth = add_up(fixture, 4, 60);
    fourth->users = 1;
    add_up(fixture, 5, 0)->users = 1;
    return fourth;
}

static void as_few_end_as_do(void **state)
{
    struct fixture *fixture = *state;
    struct budget_stats memory;

    add_four(fixture);
    templates_yield(&fixture->templates, 1);
    check_there(fixture, true, false, true);
    templates_yield(&fixture->templates, TEMPLATES_BYTES);
    check_there(fixture, false, false, true);
    budget_stats(fixture->sandbox.budget, &memory);
    assert_int_equal(memory.used, 2 * TEMPLATES_BYTES);
}

static void one_with_boxes_ends_when_it_is_not_asked_for_more(void **state)
{
    struct fixture *fixture = *state;
    struct template *fourth = add_four(fixture);
    struct budget_stats memory;

    templates_yield(&fixture->templates, 2 * TEMPLATES_BYTES + 1);
    check_there(fixture, false, false, false);
    assert_int_equal(fourth->state, TEMPLATE_RETIRED);
    budget_stats(fixture->sandbox.budget, &memory);
    assert_int_equal(memory.used, 2 * TEMPLATES_BYTES); /* one is about to order of it */
    fourth->users = 0;
    templates_boot_let_go(fourth);
    budget_stats(fixture->sandbox.budget, &memory);
    assert_int_equal(memory.used, TEMPLATES_BYTES);
}

static void none_ends_for_nothing(void **state)
{
    struct fixture *fixture = *state;

    add_four(fixture);
    templates_yield(&fixture->templates, 3 * TEMPLATES_BYTES + 1);
    check_there(fixture, true, true, true);
    templates_boot(&fixture->templates, &(struct templates_kind){ .cpus = 9 });
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 1);
}

static void what_gave_way_stays_away_for_a_while(void **state)
{
    struct fixture *fixture = *state;
    const struct templates_kind kind = { .cpus = 9 };

    add_four(fixture);
    templates_yield(&fixture->templates, 1);
    templates_boot(&fixture->templates, &kind);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 0);
    fixture->templates.yielded_ns -= 11 * CLOCK_NS_PER_S;
    templates_boot(&fixture->templates, &kind);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 1);
}

/* Boots of boxes go first, but where there are always some an order does not wait for ever. */
static void an_order_waits_a_second_at_most(void **state)
{
    struct fixture *fixture = *state;
    struct template *ordered;

    templates_boot(&fixture->templates, &(struct templates_kind){ .cpus = 9 });
    ordered = fixture->templates.first;
    templates_age(&fixture->templates, ordered->born_ns);
    assert_false(ordered->sent);
    templates_age(&fixture->templates, ordered->born_ns + 1 * CLOCK_NS_PER_S);
    assert_true(ordered->sent);
}

static void one_that_boots_gives_way_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct template *booting;
    struct budget_stats memory;

    templates_boot(&fixture->templates, &(struct templates_kind){ .cpus = 9 });
    booting = fixture->templates.first;
    templates_start(&fixture->templates);
    assert_true(booting->sent);
    templates_yield(&fixture->templates, 1);
    budget_stats(fixture->sandbox.budget, &memory);
    assert_int_equal(memory.used, 0);
    assert_int_equal(booting->state, TEMPLATE_BOOTING); /* its thread ends it */
    assert_int_not_equal(cancel_get(&booting->cancel), CANCEL_NONE);
    templates_yield(&fixture->templates, 1); /* there is nothing more to have of it */
    assert_true(pool_withdraw(fixture->templates.lane, &booting->job));
    booting->job.run(&booting->job);
    assert_int_equal(booting->state, TEMPLATE_RETIRED);
    assert_null(fixture->templates.notes);
}

/* Behind the spare for the next call, that is. */
static void what_is_ordered_boots_when_it_is_said(void **state)
{
    struct fixture *fixture = *state;

    templates_boot(&fixture->templates, &(struct templates_kind){ .cpus = 9 });
    assert_int_equal(pool_position(fixture->templates.lane, &fixture->templates.first->job), -1);
    templates_start(&fixture->templates);
    assert_int_equal(pool_position(fixture->templates.lane, &fixture->templates.first->job), 0);
    templates_start(&fixture->templates);
}

static void those_that_fail_are_left_alone_for_longer_each_time(void **state)
{
    struct fixture *fixture = *state;
    const int64_t pauses_s[] = { 60, 120, 240, 480, 960, 1920, 3840, 3840 };
    char module[] = "unfit";
    char *modules[] = { module };
    const struct templates_kind kind = { .cpus = 1, .preload = { .items = modules, .count = 1 } };

    templates_boot_failed(&fixture->templates, &kind, "of a test");
    templates_boot_failed(&fixture->templates, &kind, "of a test");
    templates_boot(&fixture->templates, &kind);
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 1);
    for (size_t i = 0; i < sizeof(pauses_s) / sizeof(pauses_s[0]); i++) {
        fixture->templates.first->state = TEMPLATE_RETIRED;
        templates_boot_failed(&fixture->templates, &kind, "of a test");
        fixture->templates.notes->failed_ns -= (pauses_s[i] - 1) * CLOCK_NS_PER_S;
        templates_boot(&fixture->templates, &kind);
        assert_int_equal(count(fixture, TEMPLATE_BOOTING), 0);
        fixture->templates.notes->failed_ns -= 2 * CLOCK_NS_PER_S;
        templates_boot(&fixture->templates, &kind);
        assert_int_equal(count(fixture, TEMPLATE_BOOTING), 1);
    }
    /* That says nothing of others. */
    templates_boot_failed(&fixture->templates, &kind, "of a test");
    templates_boot(&fixture->templates, &(struct templates_kind){ .cpus = 2 });
    assert_int_equal(count(fixture, TEMPLATE_BOOTING), 2);
}

static void a_small_budget_has_none(void **state)
{
    struct sandbox sandbox = { .budget = budget_new(UINT64_C(380) << 20) };
    struct templates *templates = templates_new(&sandbox, true, NULL);
    struct templates_stats stats;

    (void)state;
    assert_non_null(templates);
    templates_stats(templates, &stats);
    assert_false(stats.enabled);
    assert_string_equal(stats.why, "the memory of all boxes is too small to keep one");
    templates_free(templates);
    templates = templates_new(&sandbox, false, NULL);
    templates_stats(templates, &stats);
    assert_string_equal(stats.why, ""); /* nobody wanted any */
    templates_free(templates);
    budget_free(sandbox.budget);
}

struct waiter {
    struct pool_job job;
    struct budget_claim memory;
    sem_t ran;
};

static void note(struct pool_job *job)
{
    (void)sem_post(&CONTAINER_OF(job, struct waiter, job)->ran);
}

/* From the pool that finds no memory to the template that ends for it. */
static void a_call_that_waits_gets_the_memory(void **state)
{
    struct fixture *fixture = *state;
    struct sandbox *sandbox = &fixture->sandbox;
    struct waiter waiter = { .job = { .run = note, .drop = drop } };
    struct pool_rules rules = { .budget = sandbox->budget, .short_of = reserve_ask };

    sandbox->templates = &fixture->templates;
    sandbox->spares = spares_new(sandbox, 0, NULL);
    rules.context = sandbox->reserve = reserve_new(sandbox, NULL);
    assert_non_null(sandbox->reserve);
    pool_set_rules(sandbox->pool, &rules);
    add_up(fixture, 2, 0);
    waiter.job.claim = &waiter.memory;
    waiter.job.need = (UINT64_C(1) << 30) - TEMPLATES_BYTES + 1;
    (void)sem_init(&waiter.ran, 0, 0);
    assert_int_equal(pool_submit(sandbox->pool, &waiter.job, NULL), 0);
    assert_int_equal(sem_wait(&waiter.ran), 0);
    pool_end(sandbox->pool);
    reserve_free(sandbox->reserve); /* with its thread: the list is looked at */
    assert_false(is_there(fixture, 2));
    spares_free(sandbox->spares);
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
        cmocka_unit_test_setup_teardown(one_makes_way_for_the_common_kind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_replaced_still_hears_its_orders, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(as_few_end_as_do, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_with_boxes_ends_when_it_is_not_asked_for_more, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(none_ends_for_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_gave_way_stays_away_for_a_while, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_order_waits_a_second_at_most, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_boots_gives_way_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_ordered_boots_when_it_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(those_that_fail_are_left_alone_for_longer_each_time, set_up,
                                        tear_down),
        cmocka_unit_test(a_small_budget_has_none),
        cmocka_unit_test_setup_teardown(a_call_that_waits_gets_the_memory, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
