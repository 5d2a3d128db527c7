/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/pool.h"
#include "tests/unit/poolkit.h"

/* Two pools: the threads of one run jobs of the other. */
struct scene {
    struct poolkit_scene jobs;
    struct pool *host;  /* whose threads may be away */
    struct pool *other; /* whose jobs they run */
};

/* Submits the jobs that follow it to the other pool, then does what a job does. */
struct job {
    struct poolkit_job base;
    struct pool *other;
    bool goes_on; /* with what it submitted, within itself */
    struct job *then[2];
};

static void run(struct pool_job *base)
{
    struct job *job = (struct job *)(void *)base;

    for (size_t i = 0; i < 2 && job->then[i] != NULL; i++) {
        poolkit_submit(job->other, &job->then[i]->base);
    }
    if (job->goes_on && pool_goes_on()) {
        pool_go_on();
    }
    poolkit_run(base);
}

static struct job make_job(struct scene *scene, char name)
{
    struct job job = { .base = poolkit_job(&scene->jobs, name, (uint64_t)name),
                       .other = scene->other };

    job.base.base.run = run;
    return job;
}

static struct job make_mobile(struct scene *scene, char name)
{
    struct job job = make_job(scene, name);

    job.base.base.mobile = true;
    return job;
}

static void begin(struct scene *scene, size_t host_threads, size_t other_threads)
{
    poolkit_begin(&scene->jobs);
    scene->host = pool_new("host", host_threads, POOLKIT_MOST, NULL);
    scene->other = pool_new("other", other_threads, POOLKIT_MOST, NULL);
    pool_let_go(scene->host, 2);
}

static void end(struct scene *scene)
{
    pool_free(scene->host);
    pool_free(scene->other);
    poolkit_end(&scene->jobs);
}

static void assert_counts(struct pool *pool, size_t running, size_t queued)
{
    struct pool_stats stats;

    pool_stats(pool, &stats);
    assert_int_equal(stats.running, running);
    assert_int_equal(stats.queued, queued);
}

static void runs_where_it_was_submitted(void **state)
{
    struct scene scene;
    struct job first;
    struct job cell;

    (void)state;
    begin(&scene, 1, 1);
    first = make_job(&scene, 'a');
    cell = make_mobile(&scene, 'b');
    first.then[0] = &cell;
    poolkit_submit(scene.host, &first.base);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 2);
    assert_string_equal(scene.jobs.order, "ab"); /* the job that submits is done first */
    assert_true(pthread_equal(scene.jobs.threads[0], scene.jobs.threads[1]));
    end(&scene);
}

/* Neither what may not move, nor what no thread of a pool submits. */
static void others_run_at_home(void **state)
{
    struct scene scene;
    struct job first;
    struct job bound;
    struct job cell;

    (void)state;
    begin(&scene, 1, 1);
    first = make_job(&scene, 'a');
    bound = make_job(&scene, 'b');
    first.then[0] = &bound;
    poolkit_submit(scene.host, &first.base);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 2);
    assert_false(pthread_equal(scene.jobs.threads[0], scene.jobs.threads[1]));
    cell = make_mobile(&scene, 'c');
    poolkit_submit(scene.other, &cell.base);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 3);
    assert_false(pthread_equal(scene.jobs.threads[2], pthread_self()));
    end(&scene);
}

/* A guest has a seat in its own pool and none in the other. */
static void counts_where_it_belongs(void **state)
{
    struct scene scene;
    struct job first;
    struct job cell;
    struct job late;
    struct job next;

    (void)state;
    begin(&scene, 1, 1);
    first = make_job(&scene, 'a');
    cell = make_mobile(&scene, 'b');
    cell.base.gated = true;
    first.then[0] = &cell;
    poolkit_submit(scene.host, &first.base);
    poolkit_wait(&scene.jobs, &scene.jobs.waiting, 1);
    late = make_job(&scene, 'c');
    poolkit_submit(scene.other, &late.base);
    next = make_job(&scene, 'd');
    poolkit_submit(scene.host, &next.base);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 2);
    assert_string_equal(scene.jobs.order, "ad"); /* a thread more, since one is away */
    assert_counts(scene.other, 1, 1);
    poolkit_open(&scene.jobs);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 4);
    assert_string_equal(scene.jobs.order, "adbc");
    assert_true(pthread_equal(scene.jobs.threads[0], scene.jobs.threads[2]));
    assert_false(pthread_equal(scene.jobs.threads[0], scene.jobs.threads[1]));
    end(&scene);
}

/* Whoever waits already is served before a guest, and rules hold for guests. */
static void takes_its_turn(void **state)
{
    struct scene scene;
    struct job gate;
    struct job first;
    struct job waits;
    struct job cell;

    (void)state;
    begin(&scene, 1, 2);
    pool_set_rules(scene.other, &(struct pool_rules){ .per_caller = 1 });
    gate = make_job(&scene, 'x');
    gate.base.gated = true;
    poolkit_submit(scene.other, &gate.base);
    poolkit_wait(&scene.jobs, &scene.jobs.waiting, 1);
    first = make_job(&scene, 'a');
    waits = make_mobile(&scene, 'x'); /* a thread is free, but its caller has what it may have */
    cell = make_mobile(&scene, 'b');  /* somebody waits: whose turn it is, the pool decides */
    first.then[0] = &waits;
    first.then[1] = &cell;
    poolkit_submit(scene.host, &first.base);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 2);
    assert_string_equal(scene.jobs.order + 2, "");
    assert_false(pthread_equal(scene.jobs.threads[0], scene.jobs.threads[1]));
    assert_true(pool_position(scene.other, &waits.base.base) == 0);
    poolkit_open(&scene.jobs);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 4);
    end(&scene);
}

/* Of one job's jobs its thread goes on with the first; what a guest submits follows it. */
static void goes_on_with_one(void **state)
{
    struct scene scene;
    struct job first;
    struct job cells[3];

    (void)state;
    begin(&scene, 1, 3);
    first = make_job(&scene, 'a');
    for (size_t i = 0; i < 3; i++) {
        cells[i] = make_mobile(&scene, (char)('b' + i));
    }
    first.then[0] = &cells[0];
    first.base.gated = true;
    cells[0].then[0] = &cells[1];
    poolkit_submit(scene.host, &first.base);
    poolkit_wait(&scene.jobs, &scene.jobs.waiting, 1);
    poolkit_submit(scene.other, &cells[2].base);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 1);
    assert_string_equal(scene.jobs.order, "d");
    poolkit_open(&scene.jobs);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 4);
    assert_string_equal(scene.jobs.order, "dabc");
    assert_true(pthread_equal(scene.jobs.threads[1], scene.jobs.threads[2]));
    assert_true(pthread_equal(scene.jobs.threads[1], scene.jobs.threads[3]));
    end(&scene);
}

/* No more threads than that are away. */
static void away_has_an_end(void **state)
{
    struct scene scene;
    struct job first[3];
    struct job cells[3];

    (void)state;
    begin(&scene, 1, 4);
    for (size_t i = 0; i < 3; i++) {
        first[i] = make_job(&scene, 'a');
        cells[i] = make_mobile(&scene, (char)('b' + i));
        cells[i].base.gated = true;
        first[i].then[0] = &cells[i];
        poolkit_submit(scene.host, &first[i].base);
        poolkit_wait(&scene.jobs, &scene.jobs.waiting, (int)i + 1);
    }
    assert_counts(scene.other, 3, 0);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 3);
    poolkit_open(&scene.jobs);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 6);
    for (size_t i = 3; i < 6; i++) {
        const size_t number = (size_t)(scene.jobs.order[i] - 'b');

        assert_int_equal(pthread_equal(scene.jobs.threads[i], scene.jobs.threads[number]) != 0,
                         number < 2);
    }
    end(&scene);
}

/* It runs within the job that submitted it, with what follows, and that one keeps its seat. */
static void stays_in_its_seat(void **state)
{
    struct scene scene;
    struct job first;
    struct job cells[2];
    struct job next;

    (void)state;
    begin(&scene, 1, 2);
    pool_stay(scene.host);
    first = make_job(&scene, 'a');
    first.goes_on = true;
    cells[0] = make_mobile(&scene, 'b');
    cells[1] = make_mobile(&scene, 'c');
    cells[1].base.gated = true;
    first.then[0] = &cells[0];
    cells[0].then[0] = &cells[1];
    poolkit_submit(scene.host, &first.base);
    poolkit_wait(&scene.jobs, &scene.jobs.waiting, 1);
    next = make_job(&scene, 'd');
    poolkit_submit(scene.host, &next.base);
    assert_counts(scene.host, 1, 1);
    assert_counts(scene.other, 1, 0);
    poolkit_open(&scene.jobs);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 4);
    assert_string_equal(scene.jobs.order, "bcad");
    for (size_t i = 1; i < 4; i++) {
        assert_true(pthread_equal(scene.jobs.threads[0], scene.jobs.threads[i]));
    }
    end(&scene);
}

/* What may not move was taken by nobody; nor has a thread of no pool anything to go on with. */
static void has_nothing_to_go_on_with(void **state)
{
    struct scene scene;
    struct job first;
    struct job bound;

    (void)state;
    assert_false(pool_goes_on());
    begin(&scene, 1, 1);
    pool_stay(scene.host);
    first = make_job(&scene, 'a');
    first.goes_on = true;
    bound = make_job(&scene, 'b');
    first.then[0] = &bound;
    poolkit_submit(scene.host, &first.base);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 2);
    assert_false(pthread_equal(scene.jobs.threads[0], scene.jobs.threads[1]));
    end(&scene);
}

static void *end_other(void *context)
{
    pool_end(((struct scene *)context)->other);
    return NULL;
}

/* Ending a pool waits for its guests, too, and drops what waits behind them. */
static void ends_behind_its_guests(void **state)
{
    struct scene scene;
    struct job first;
    struct job cell;
    struct job late;
    pthread_t ender;

    (void)state;
    begin(&scene, 1, 1);
    first = make_job(&scene, 'a');
    cell = make_mobile(&scene, 'b');
    cell.base.gated = true;
    first.then[0] = &cell;
    poolkit_submit(scene.host, &first.base);
    poolkit_wait(&scene.jobs, &scene.jobs.waiting, 1);
    late = make_mobile(&scene, 'c');
    poolkit_submit(scene.other, &late.base);
    assert_int_equal(pthread_create(&ender, NULL, end_other, &scene), 0);
    poolkit_open(&scene.jobs);
    assert_int_equal(pthread_join(ender, NULL), 0);
    assert_counts(scene.other, 0, 0);
    poolkit_wait(&scene.jobs, &scene.jobs.done, 2);
    assert_int_equal(scene.jobs.done + scene.jobs.dropped, 3);
    end(&scene);
}

#define STORM_JOBS 400
#define STORM_SEATS 3

struct storm {
    struct pool *other;
    atomic_int running;
    atomic_int most;
    atomic_int done;
};

struct storm_job {
    struct pool_job base;
    struct storm *storm;
    struct storm_job *then;
};

static void storm_run(struct pool_job *base)
{
    struct storm_job *job = (struct storm_job *)(void *)base;

    if (job->then != NULL) {
        assert_int_equal(pool_submit(job->storm->other, &job->then->base, NULL), 0);
    } else {
        const int running = atomic_fetch_add(&job->storm->running, 1) + 1;
        int most = atomic_load(&job->storm->most);

        while (running > most && !atomic_compare_exchange_weak(&job->storm->most, &most, running)) {
        }
        (void)atomic_fetch_sub(&job->storm->running, 1);
        (void)atomic_fetch_add(&job->storm->done, 1);
    }
}

/* Every job runs once, wherever; never more of them than the pool has seats. */
static void all_run_once(void **state)
{
    struct storm_job jobs[STORM_JOBS][2];
    struct pool *host = pool_new("host", 4, STORM_JOBS, NULL);
    struct storm storm = { .other = pool_new("other", STORM_SEATS, STORM_JOBS, NULL) };

    (void)state;
    pool_let_go(host, 4);
    for (size_t i = 0; i < STORM_JOBS; i++) {
        const struct pool_job base = { .run = storm_run, .caller = i % 5, .mobile = i % 7 != 0 };

        jobs[i][0] = (struct storm_job){ .base = base, .storm = &storm, .then = &jobs[i][1] };
        jobs[i][1] = (struct storm_job){ .base = base, .storm = &storm };
        assert_int_equal(pool_submit(host, &jobs[i][0].base, NULL), 0);
    }
    while (atomic_load(&storm.done) < STORM_JOBS) {
        struct pool_stats stats;

        pool_stats(storm.other, &stats);
        assert_true(stats.running <= STORM_SEATS);
    }
    pool_free(host);
    pool_free(storm.other);
    assert_int_equal(atomic_load(&storm.done), STORM_JOBS);
    assert_true(atomic_load(&storm.most) <= STORM_SEATS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_where_it_was_submitted),
        cmocka_unit_test(stays_in_its_seat),
        cmocka_unit_test(has_nothing_to_go_on_with),
        cmocka_unit_test(others_run_at_home),
        cmocka_unit_test(counts_where_it_belongs),
        cmocka_unit_test(takes_its_turn),
        cmocka_unit_test(goes_on_with_one),
        cmocka_unit_test(away_has_an_end),
        cmocka_unit_test(ends_behind_its_guests),
        cmocka_unit_test(all_run_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
