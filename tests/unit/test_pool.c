/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/budget.h"
#include "lib/base/pool.h"
#include "lib/base/sleepers.h"
#include "tests/unit/poolkit.h"

/* Occupies every thread of the pool until open_gate. */
static void occupy(struct pool *pool, struct poolkit_scene *scene, struct poolkit_job *gates,
                   int threads)
{
    for (int i = 0; i < threads; i++) {
        gates[i] = poolkit_job(scene, '-', 0);
        gates[i].gated = true;
        poolkit_submit(pool, &gates[i]);
    }
    poolkit_wait(scene, &scene->waiting, threads);
}

/* One job for each letter: a capital is the caller, its position among equals the order. */
static void submit_letters(struct pool *pool, struct poolkit_scene *scene, struct poolkit_job *jobs,
                           const char *callers)
{
    for (size_t i = 0; callers[i] != '\0'; i++) {
        jobs[i] = poolkit_job(scene, callers[i], (uint64_t)callers[i]);
        poolkit_submit(pool, &jobs[i]);
    }
}

static void callers_take_turns(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job gate;
    struct poolkit_job jobs[POOLKIT_MOST];
    struct pool *pool = pool_new("test", 1, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    occupy(pool, &scene, &gate, 1);
    submit_letters(pool, &scene, jobs, "AAAABBC");
    poolkit_open(&scene);
    poolkit_wait(&scene, &scene.done, 8);
    assert_string_equal(scene.order, "-ABCABAA");
    pool_free(pool);
}

static void positions_tell_the_real_order(void **state)
{
    static const char callers[] = "AAAABBCAADBC";
    struct poolkit_scene scene;
    struct poolkit_job gate;
    struct poolkit_job jobs[POOLKIT_MOST];
    struct pool *pool = pool_new("test", 1, POOLKIT_MOST, NULL);
    char expected[POOLKIT_MOST + 1] = "-";

    (void)state;
    poolkit_begin(&scene);
    occupy(pool, &scene, &gate, 1);
    assert_int_equal(pool_position(pool, &gate.base), -1);
    submit_letters(pool, &scene, jobs, callers);
    for (size_t i = 0; callers[i] != '\0'; i++) {
        long position = pool_position(pool, &jobs[i].base);

        assert_in_range(position, 0, sizeof(callers) - 2);
        assert_int_equal(expected[position + 1], '\0');
        expected[position + 1] = callers[i];
    }
    poolkit_open(&scene);
    poolkit_wait(&scene, &scene.done, (int)sizeof(callers));
    assert_string_equal(scene.order, expected);
    assert_int_equal(pool_position(pool, &jobs[0].base), -1);
    pool_free(pool);
}

static void a_full_queue_refuses(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job gate;
    struct poolkit_job jobs[3];
    struct err err = ERR_INIT;
    struct pool_stats stats = { 0 };
    struct pool *pool = pool_new("test", 1, 2, NULL);

    (void)state;
    poolkit_begin(&scene);
    occupy(pool, &scene, &gate, 1);
    submit_letters(pool, &scene, jobs, "AB");
    jobs[2] = poolkit_job(&scene, 'C', 'C');
    assert_int_equal(pool_submit(pool, &jobs[2].base, &err), -1);
    assert_int_equal(err.code, ERR_QUEUE_FULL);
    pool_stats(pool, &stats);
    assert_int_equal(stats.threads, 1);
    assert_int_equal(stats.running, 1);
    assert_int_equal(stats.queued, 2);
    assert_int_equal(stats.queue_max, 2);
    poolkit_open(&scene);
    poolkit_wait(&scene, &scene.done, 3);
    assert_int_equal(pool_submit(pool, &jobs[2].base, &err), 0);
    poolkit_wait(&scene, &scene.done, 4);
    assert_string_equal(scene.order, "-ABC");
    pool_free(pool);
}

static void what_was_admitted_before_finds_room(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job gate;
    struct poolkit_job jobs[3];
    struct err err = ERR_INIT;
    struct pool *pool = pool_new("test", 1, 2, NULL);

    (void)state;
    poolkit_begin(&scene);
    occupy(pool, &scene, &gate, 1);
    submit_letters(pool, &scene, jobs, "AB");
    jobs[2] = poolkit_job(&scene, 'C', 'C');
    assert_int_equal(pool_resubmit(pool, &jobs[2].base, &err), 0);
    poolkit_open(&scene);
    poolkit_wait(&scene, &scene.done, 4);
    pool_close(pool);
    assert_int_equal(pool_resubmit(pool, &jobs[2].base, &err), -1);
    assert_int_equal(err.code, ERR_SHUTTING_DOWN);
    pool_free(pool);
}

static void withdrawn_jobs_do_not_run(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job gate;
    struct poolkit_job jobs[POOLKIT_MOST];
    struct pool *pool = pool_new("test", 1, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    occupy(pool, &scene, &gate, 1);
    assert_false(pool_withdraw(pool, &gate.base));
    submit_letters(pool, &scene, jobs, "AAABCCA");
    assert_true(pool_withdraw(pool, &jobs[1].base)); /* in the middle */
    assert_false(pool_withdraw(pool, &jobs[1].base));
    assert_true(pool_withdraw(pool, &jobs[6].base)); /* the last */
    assert_true(pool_withdraw(pool, &jobs[3].base)); /* all that its caller has */
    assert_true(pool_withdraw(pool, &jobs[4].base)); /* the first */
    poolkit_submit(pool, &jobs[6]);
    poolkit_submit(pool, &jobs[3]);
    poolkit_open(&scene);
    poolkit_wait(&scene, &scene.done, 6);
    assert_string_equal(scene.order, "-ACBAA");
    assert_false(pool_withdraw(pool, &jobs[0].base));
    pool_free(pool);
    assert_int_equal(scene.dropped, 0);
}

static void closing_drops_what_waits(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job gates[2];
    struct poolkit_job jobs[POOLKIT_MOST];
    struct err err = ERR_INIT;
    struct pool *pool = pool_new("test", 2, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    occupy(pool, &scene, gates, 2);
    submit_letters(pool, &scene, jobs, "AAB");
    pool_close(pool);
    assert_int_equal(scene.dropped, 3);
    assert_int_equal(pool_submit(pool, &jobs[0].base, &err), -1);
    assert_int_equal(err.code, ERR_SHUTTING_DOWN);
    pool_close(pool);
    poolkit_open(&scene);
    pool_free(pool);
    assert_string_equal(scene.order, "--");
    assert_int_equal(scene.dropped, 3);
}

static void *free_pool(void *pool)
{
    pool_free(pool);
    return NULL;
}

static void freeing_waits_for_running_jobs(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job gate;
    struct poolkit_job job;
    pthread_t thread;
    struct pool *pool = pool_new("test", 1, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    occupy(pool, &scene, &gate, 1);
    submit_letters(pool, &scene, &job, "A");
    assert_int_equal(pthread_create(&thread, NULL, free_pool, pool), 0);
    poolkit_open(&scene);
    assert_int_equal(pthread_join(thread, NULL), 0);
    /* Which of the two the waiting job met is a race, but never both and never neither. */
    assert_int_equal(scene.done + scene.dropped, 2);
    pool_free(NULL);
}

static void do_nothing(struct pool_job *base)
{
    (void)base;
}

static void *submit_to_the_end(void *pool)
{
    enum { COUNT = 500 };
    struct pool_job *jobs = calloc(COUNT, sizeof(*jobs));

    assert_non_null(jobs);
    for (int i = 0; i < COUNT; i++) {
        jobs[i].run = do_nothing;
        jobs[i].drop = do_nothing;
        if (pool_submit(pool, &jobs[i], NULL) < 0) {
            break;
        }
    }
    return jobs;
}

/* Who wakes a thread for a job that came in time does so beside the pool's end. */
static void a_pool_ends_while_jobs_come(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        struct pool *pool = pool_new("test", 2, 500, NULL);
        pthread_t thread;
        void *jobs;

        assert_int_equal(pthread_create(&thread, NULL, submit_to_the_end, pool), 0);
        pool_end(pool);
        assert_int_equal(pthread_join(thread, &jobs), 0);
        pool_free(pool);
        free(jobs);
    }
}

static void free_itself(struct pool_job *base)
{
    struct poolkit_scene *scene = ((struct poolkit_job *)(void *)base)->scene;

    free(base);
    poolkit_count(scene);
}

struct submitter {
    struct pool *pool;
    struct poolkit_scene *scene;
    uint64_t caller;
};

static void *submit_many(void *argument)
{
    const struct submitter *submitter = argument;

    for (int i = 0; i < 500; i++) {
        struct poolkit_job *job = malloc(sizeof(*job));

        assert_non_null(job);
        *job = poolkit_job(submitter->scene, 'x', submitter->caller);
        job->base.run = free_itself;
        assert_int_equal(pool_submit(submitter->pool, &job->base, NULL), 0);
    }
    return NULL;
}

static void many_threads_lose_no_job(void **state)
{
    struct poolkit_scene scene;
    struct submitter submitters[4];
    pthread_t threads[4];
    struct pool_stats stats = { 0 };
    struct pool *pool = pool_new("test", 3, 2000, NULL);

    (void)state;
    poolkit_begin(&scene);
    for (size_t i = 0; i < 4; i++) {
        submitters[i] = (struct submitter){ pool, &scene, i / 2 };
        assert_int_equal(pthread_create(&threads[i], NULL, submit_many, &submitters[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    poolkit_wait(&scene, &scene.done, 2000);
    pool_stats(pool, &stats);
    assert_int_equal(stats.queued, 0);
    pool_free(pool);
}

static void read_own_name(struct pool_job *base)
{
    struct poolkit_scene *scene = ((struct poolkit_job *)(void *)base)->scene;

    (void)pthread_getname_np(pthread_self(), scene->order, sizeof(scene->order));
    poolkit_count(scene);
}

static void threads_are_named(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job job;
    struct pool *pool = pool_new("averylongname", 1, 1, NULL);

    (void)state;
    poolkit_begin(&scene);
    job = poolkit_job(&scene, 'x', 0);
    job.base.run = read_own_name;
    poolkit_submit(pool, &job);
    poolkit_wait(&scene, &scene.done, 1);
    assert_string_equal(scene.order, "averylongnam-0");
    pool_free(pool);
}

/* ---- what one caller can hold ---- */

static struct poolkit_job make_grouped(struct poolkit_scene *scene, char name, uint64_t caller,
                                       uint64_t group)
{
    struct poolkit_job job = poolkit_job(scene, name, caller);

    job.base.group = group;
    return job;
}

static void groups_of_a_caller_take_turns(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job gate;
    /* The flood of group 1 comes first; group 2 and the other caller don't wait for its end. */
    struct poolkit_job jobs[8];
    struct pool *pool = pool_new("test", 1, POOLKIT_MOST, NULL);
    long positions[8];

    (void)state;
    poolkit_begin(&scene);
    occupy(pool, &scene, &gate, 1);
    for (size_t i = 0; i < 8; i++) {
        jobs[i] = i < 4   ? make_grouped(&scene, 'a', 1, 1)
                  : i < 6 ? make_grouped(&scene, 'b', 1, 2)
                          : make_grouped(&scene, 'C', 2, 0);
        poolkit_submit(pool, &jobs[i]);
    }
    for (size_t i = 0; i < 8; i++) {
        positions[i] = pool_position(pool, &jobs[i].base);
    }
    assert_int_equal(positions[0], 0);
    assert_int_equal(positions[6], 1);
    assert_int_equal(positions[4], 2);
    assert_int_equal(positions[7], 3);
    assert_int_equal(positions[3], 7);
    poolkit_open(&scene);
    poolkit_wait(&scene, &scene.done, 9);
    assert_string_equal(scene.order, "-aCbCabaa");
    pool_free(pool);
}

/* Gated jobs of one caller on a pool with these rules: how many of them get to run. */
static void check_cap(const struct pool_rules *rules, int expected)
{
    struct poolkit_scene scene;
    struct poolkit_job jobs[4];
    struct poolkit_job other;
    struct pool_stats stats;
    struct pool *pool = pool_new("test", 4, POOLKIT_MOST, NULL);

    poolkit_begin(&scene);
    pool_set_rules(pool, rules);
    for (size_t i = 0; i < 4; i++) {
        jobs[i] = poolkit_job(&scene, 'a', 1);
        jobs[i].gated = true;
        poolkit_submit(pool, &jobs[i]);
    }
    poolkit_wait(&scene, &scene.waiting, expected);
    /* Another caller's job finds a thread, so none of the first one's was on its way any more. */
    other = poolkit_job(&scene, 'B', 2);
    poolkit_submit(pool, &other);
    poolkit_wait(&scene, &scene.done, 1);
    pool_stats(pool, &stats);
    assert_int_equal(stats.queued, 4 - expected);
    poolkit_open(&scene);
    poolkit_wait(&scene, &scene.done, 5);
    assert_string_equal(scene.order, "Baaaa");
    pool_free(pool);
}

static void one_caller_leaves_threads_to_others(void **state)
{
    (void)state;
    check_cap(&(struct pool_rules){ .per_caller = 3 }, 3);
    check_cap(&(struct pool_rules){ .per_caller = 3, .per_group = 2 }, 2);
}

static void what_is_not_settled_holds_back_its_callers_next(void **state)
{
    (void)state;
    check_cap(&(struct pool_rules){ .prompt = 1, .unsettled = 2 }, 2);
    check_cap(&(struct pool_rules){ .prompt = 2, .unsettled = 1 }, 2);
}

struct settling {
    struct poolkit_job job;
    struct pool *pool;
};

static void settle_then_wait(struct pool_job *base)
{
    struct settling *job = (struct settling *)(void *)base;

    pool_settle(job->pool, base, true);
    pool_settle(job->pool, base, true);
    poolkit_pass(job->job.scene);
    pool_settle(job->pool, base, false);
}

static struct settling make_settling(struct pool *pool, struct poolkit_scene *scene,
                                     uint64_t caller)
{
    struct settling settling = { .job = poolkit_job(scene, '-', caller), .pool = pool };

    settling.job.base.run = settle_then_wait;
    return settling;
}

static void settled_jobs_let_the_next_start(void **state)
{
    struct poolkit_scene scene;
    struct settling jobs[3];
    struct pool *pool = pool_new("test", 3, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    pool_set_rules(pool, &(struct pool_rules){ .prompt = 1, .unsettled = 1 });
    for (size_t i = 0; i < 3; i++) {
        jobs[i] = make_settling(pool, &scene, 0);
        poolkit_submit(pool, &jobs[i].job);
    }
    poolkit_wait(&scene, &scene.waiting, 3);
    poolkit_open(&scene);
    pool_free(pool);
}

static void others_that_are_engaged_hold_back_as_well(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job jobs[3];
    struct pool *pool = pool_new("test", 3, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    pool_set_rules(pool, &(struct pool_rules){ .prompt = 1, .unsettled = 3 });
    pool_engage(pool, true);
    pool_engage(pool, true);
    for (size_t i = 0; i < 2; i++) {
        jobs[i] = poolkit_job(&scene, 'a', 1);
        jobs[i].gated = true;
        poolkit_submit(pool, &jobs[i]);
    }
    jobs[2] = poolkit_job(&scene, 'B', 2);
    poolkit_submit(pool, &jobs[2]);
    poolkit_wait(&scene, &scene.done, 1);
    assert_int_equal(pool_position(pool, &jobs[1].base), 0);
    pool_engage(pool, false);
    pool_engage(pool, false);
    poolkit_wait(&scene, &scene.waiting, 2);
    poolkit_open(&scene);
    poolkit_wait(&scene, &scene.done, 3);
    assert_string_equal(scene.order, "Baa");
    pool_free(pool);
}

/* Runs jobs of a caller that comes one at a time. */
static void run_singly(struct pool *pool, struct poolkit_scene *scene, uint64_t caller, int count)
{
    for (int i = 0; i < count; i++) {
        struct poolkit_job job = poolkit_job(scene, 'S', caller);
        struct pool_stats stats;
        const int before = scene->done;

        poolkit_submit(pool, &job);
        poolkit_wait(scene, &scene->done, before + 1);
        do { /* the job is on this stack */
            (void)usleep(200);
            pool_stats(pool, &stats);
        } while (stats.callers > 1);
    }
}

/* What one more of an alone caller may use is left to others once there are some. */
static void a_processor_is_left_to_those_who_come_singly(void **state)
{
    struct poolkit_scene scene;
    struct settling jobs[3];
    struct pool *pool = pool_new("test", 4, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    pool_set_rules(pool, &(struct pool_rules){ .prompt = 1, .unsettled = 2 });
    pool_engage(pool, true);
    for (int i = 0; i < 3; i++) {
        jobs[i] = make_settling(pool, &scene, 1);
    }
    for (int i = 0; i < 2; i++) {
        poolkit_submit(pool, &jobs[i].job);
    }
    poolkit_wait(&scene, &scene.waiting, 2);
    run_singly(pool, &scene, 2, 1);
    poolkit_submit(pool, &jobs[2].job);
    run_singly(pool, &scene, 2, 8);
    assert_int_equal(pool_position(pool, &jobs[2].job.base), 0);
    pool_engage(pool, false);
    poolkit_wait(&scene, &scene.waiting, 3);
    poolkit_open(&scene);
    pool_free(pool);
}

static void others_in_a_row_keep_nobody_from_his_share(void **state)
{
    struct poolkit_scene scene;
    struct settling jobs[2];
    struct pool *pool = pool_new("test", 4, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    pool_set_rules(pool, &(struct pool_rules){ .prompt = 2, .unsettled = 2 });
    pool_engage(pool, true);
    run_singly(pool, &scene, 2, 1);
    for (int i = 0; i < 2; i++) { /* the first comes alone, the second beside it */
        jobs[i] = make_settling(pool, &scene, 1);
        poolkit_submit(pool, &jobs[i].job);
        poolkit_wait(&scene, &scene.waiting, 1);
        run_singly(pool, &scene, 2, 1 - i);
    }
    assert_int_equal(pool_position(pool, &jobs[1].job.base), 0);
    run_singly(pool, &scene, 2, 4);
    poolkit_wait(&scene, &scene.waiting, 2);
    pool_engage(pool, false);
    poolkit_open(&scene);
    pool_free(pool);
}

/* Nobody comes one at a time: nothing is left to nobody. */
static void callers_with_many_share_all_processors(void **state)
{
    struct poolkit_scene first;
    struct poolkit_scene scene;
    struct poolkit_job busy[6];
    struct settling jobs[6];
    struct pool *pool = pool_new("test", 6, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&first);
    poolkit_begin(&scene);
    for (size_t i = 0; i < 6; i++) {
        busy[i] = poolkit_job(&first, 'b', 3);
        busy[i].gated = true;
        poolkit_submit(pool, &busy[i]);
    }
    poolkit_wait(&first, &first.waiting, 6);
    for (size_t i = 0; i < 6; i++) {
        jobs[i] = make_settling(pool, &scene, i % 2);
        poolkit_submit(pool, &jobs[i].job);
    }
    pool_set_rules(pool, &(struct pool_rules){ .prompt = 1, .unsettled = 2 });
    pool_engage(pool, true);
    poolkit_open(&first);
    poolkit_wait(&scene, &scene.waiting, 6);
    pool_engage(pool, false);
    poolkit_open(&scene);
    pool_free(pool);
}

/* Beside a flood another one begins, whose first job is alone for a moment. */
static void the_first_of_a_flood_is_not_one_at_a_time(void **state)
{
    struct poolkit_scene scene;
    struct settling jobs[6];
    struct pool *pool = pool_new("test", 6, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    pool_set_rules(pool, &(struct pool_rules){ .prompt = 1, .unsettled = 2 });
    pool_engage(pool, true);
    for (int i = 0; i < 6; i++) {
        jobs[i] = make_settling(pool, &scene, i % 2 == 0 ? 1 : 2);
        poolkit_submit(pool, &jobs[i].job);
        poolkit_wait(&scene, &scene.waiting,
                     i == 2 ? 2 : i + 1); /* the third waits for the fourth */
    }
    pool_engage(pool, false);
    poolkit_open(&scene);
    pool_free(pool);
}

/* ... and who comes one at a time all the while is not forgotten over it. */
static void the_first_of_a_flood_hides_no_single_caller(void **state)
{
    struct poolkit_scene scene;
    struct settling jobs[4];
    struct pool *pool = pool_new("test", 6, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    pool_set_rules(pool, &(struct pool_rules){ .prompt = 1, .unsettled = 2 });
    pool_engage(pool, true);
    for (int i = 0; i < 2; i++) { /* a flood of caller 1, and a quiet caller 2 */
        jobs[i] = make_settling(pool, &scene, 1);
        poolkit_submit(pool, &jobs[i].job);
        poolkit_wait(&scene, &scene.waiting, i + 1);
    }
    run_singly(pool, &scene, 2, 1);
    for (int i = 2; i < 4; i++) { /* another flood */
        jobs[i] = make_settling(pool, &scene, 3);
        poolkit_submit(pool, &jobs[i].job);
        poolkit_wait(&scene, &scene.waiting, 3);
    }
    assert_int_equal(pool_position(pool, &jobs[3].job.base), 0);
    pool_engage(pool, false);
    poolkit_wait(&scene, &scene.waiting, 4);
    poolkit_open(&scene);
    pool_free(pool);
}

static void end_then_wait(struct pool_job *base)
{
    struct settling *job = (struct settling *)(void *)base;

    pool_settle(job->pool, base, true);
    pool_settle(job->pool, base, false);
    pool_settle(job->pool, base, false);
    poolkit_pass(job->job.scene);
}

/* Who comes one at a time does not wait for what is taken down behind the answers. */
static void what_is_ending_holds_back_no_single_job(void **state)
{
    struct poolkit_scene scene;
    struct settling jobs[3];
    struct pool *pool = pool_new("test", 3, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    pool_set_rules(pool, &(struct pool_rules){ .prompt = 1, .unsettled = 1 });
    for (int i = 0; i < 3; i++) {
        jobs[i] = make_settling(pool, &scene, 0);
        jobs[i].job.base.run = end_then_wait;
        poolkit_submit(pool, &jobs[i].job);
        poolkit_wait(&scene, &scene.waiting, i + 1);
        assert_true(jobs[i].job.base.favoured);
    }
    poolkit_open(&scene);
    pool_free(pool);
}

static void favoured_is_who_keeps_nobody_waiting(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job gate;
    struct poolkit_job jobs[4];
    struct pool *pool = pool_new("test", 1, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    occupy(pool, &scene, &gate, 1);
    assert_true(gate.base.favoured);
    submit_letters(pool, &scene, jobs, "AAAB");
    poolkit_open(&scene);
    poolkit_wait(&scene, &scene.done, 5);
    assert_string_equal(scene.order, "-ABAA");
    assert_false(jobs[0].base.favoured);
    assert_false(jobs[1].base.favoured);
    assert_true(jobs[2].base.favoured);
    assert_true(jobs[3].base.favoured);
    pool_free(pool);
}

/* Among others, only one call at a time is: two side by side may be the start of a flood. */
static void favoured_among_others_is_one_at_a_time(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job gates[2];
    struct poolkit_job job;
    struct pool *pool = pool_new("test", 3, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    occupy(pool, &scene, gates, 2);
    assert_true(gates[1].base.favoured); /* there are no others yet */
    job = poolkit_job(&scene, 'A', 1);
    poolkit_submit(pool, &job);
    poolkit_wait(&scene, &scene.done, 1);
    assert_true(job.base.favoured);
    job = poolkit_job(&scene, 'B', 0);
    poolkit_submit(pool, &job);
    poolkit_wait(&scene, &scene.done, 2);
    assert_false(job.base.favoured);
    poolkit_open(&scene);
    pool_free(pool);
}

static void one_caller_leaves_places_in_the_queue(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job gate;
    struct poolkit_job jobs[4];
    struct err err = ERR_INIT;
    struct pool *pool = pool_new("test", 1, 3, NULL);

    (void)state;
    poolkit_begin(&scene);
    pool_set_rules(pool, &(struct pool_rules){ .queue_per_caller = 2 });
    occupy(pool, &scene, &gate, 1);
    submit_letters(pool, &scene, jobs, "AA");
    jobs[2] = poolkit_job(&scene, 'A', 'A');
    assert_int_equal(pool_submit(pool, &jobs[2].base, &err), -1);
    assert_int_equal(err.code, ERR_TOO_MANY_REQUESTS);
    assert_int_equal(err.retry_after_s, 1); /* no job has ended yet */
    jobs[2] = poolkit_job(&scene, 'B', 'B');
    assert_int_equal(pool_submit(pool, &jobs[2].base, &err), 0);
    jobs[3] = poolkit_job(&scene, 'C', 'C');
    assert_int_equal(pool_submit(pool, &jobs[3].base, &err), -1);
    assert_int_equal(err.code, ERR_QUEUE_FULL);
    poolkit_open(&scene);
    poolkit_wait(&scene, &scene.done, 4);
    assert_string_equal(scene.order, "-ABA");
    pool_free(pool);
}

static void wait_long(struct pool_job *base)
{
    (void)usleep(1200000);
    poolkit_run(base);
}

static void the_wait_is_told_from_what_was_measured(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job slow;
    struct poolkit_job gate;
    struct poolkit_job jobs[2];
    struct err err = ERR_INIT;
    struct pool_stats stats;
    struct pool *pool = pool_new("test", 1, 1, NULL);

    (void)state;
    poolkit_begin(&scene);
    slow = poolkit_job(&scene, 's', 1);
    slow.base.run = wait_long;
    poolkit_submit(pool, &slow);
    poolkit_wait(&scene, &scene.done, 1);
    occupy(pool, &scene, &gate, 1);
    pool_stats(pool, &stats);
    assert_true(stats.service_ns >= 1200000000);
    submit_letters(pool, &scene, jobs, "A");
    jobs[1] = poolkit_job(&scene, 'B', 'B');
    assert_int_equal(pool_submit(pool, &jobs[1].base, &err), -1);
    /* Two jobs of 1.2 s are before it. */
    assert_in_range(err.retry_after_s, 3, 60);
    assert_int_equal(pool_wait_s(pool), err.retry_after_s);
    poolkit_open(&scene);
    poolkit_wait(&scene, &scene.done, 3);
    pool_free(pool);
}

/* ---- claims ---- */

static void jobs_wait_for_their_claims(void **state)
{
    struct poolkit_scene scene;
    struct poolkit_job gate;
    struct poolkit_job jobs[3];
    struct budget_claim claims[4] = { { .amount = 0 } };
    struct budget *budget = budget_new(100);
    struct pool *pool = pool_new("test", 2, POOLKIT_MOST, NULL);

    (void)state;
    poolkit_begin(&scene);
    pool_set_rules(pool, &(struct pool_rules){ .budget = budget });
    gate = poolkit_job(&scene, '-', 1);
    gate.gated = true;
    gate.base.claim = &claims[3];
    gate.base.need = 60;
    poolkit_submit(pool, &gate);
    poolkit_wait(&scene, &scene.waiting, 1);
    for (size_t i = 0; i < 3; i++) {
        jobs[i] = poolkit_job(&scene, "LsM"[i], 1);
        jobs[i].base.claim = &claims[i];
        jobs[i].base.need = i == 1 ? 40 : 50;
    }
    poolkit_submit(pool, &jobs[0]);
    poolkit_submit(pool, &jobs[2]);
    /* The small one passes those of its own caller that don't fit. */
    poolkit_submit(pool, &jobs[1]);
    poolkit_wait(&scene, &scene.done, 1);
    assert_true(pool_withdraw(pool, &jobs[2].base));
    poolkit_open(&scene);
    poolkit_wait(&scene, &scene.done, 2);
    assert_false(budget_lower(budget, &claims[1], 40));
    assert_true(budget_lower(budget, &claims[3], 0));
    pool_wake(pool);
    poolkit_wait(&scene, &scene.done, 3);
    assert_string_equal(scene.order, "s-L");
    pool_free(pool);
    budget_free(budget);
}

/* ---- sleepers ---- */

#define BEDS 3

struct dormitory {
    pthread_mutex_t lock;
    struct sleepers sleepers;
    struct sleeper beds[BEDS];
};

struct guest {
    struct dormitory *dormitory;
    int number;
};

static void *rest(void *argument)
{
    const struct guest *guest = argument;
    struct dormitory *dormitory = guest->dormitory;

    (void)pthread_mutex_lock(&dormitory->lock);
    sleepers_wait(&dormitory->sleepers, &dormitory->beds[guest->number], &dormitory->lock);
    (void)pthread_mutex_unlock(&dormitory->lock);
    return NULL;
}

static void wait_until_asleep(struct dormitory *dormitory, const struct sleeper *bed)
{
    bool asleep;

    do {
        (void)pthread_mutex_lock(&dormitory->lock);
        asleep = dormitory->sleepers.first == bed;
        (void)pthread_mutex_unlock(&dormitory->lock);
        (void)usleep(200);
    } while (!asleep);
}

static void the_last_to_sleep_is_called_first(void **state)
{
    struct dormitory dormitory = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct guest guests[BEDS];
    pthread_t threads[BEDS];

    (void)state;
    for (int i = 0; i < BEDS; i++) {
        sleepers_init(&dormitory.beds[i]);
        guests[i] = (struct guest){ .dormitory = &dormitory, .number = i };
        assert_int_equal(pthread_create(&threads[i], NULL, rest, &guests[i]), 0);
        wait_until_asleep(&dormitory, &dormitory.beds[i]);
    }
    for (int i = BEDS - 1; i > 0; i--) {
        struct sleeper *chosen;

        (void)pthread_mutex_lock(&dormitory.lock);
        chosen = sleepers_choose(&dormitory.sleepers);
        (void)pthread_mutex_unlock(&dormitory.lock);
        assert_ptr_equal(chosen, &dormitory.beds[i]);
        sleepers_call(chosen);
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    (void)pthread_mutex_lock(&dormitory.lock);
    sleepers_call_all(&dormitory.sleepers);
    assert_null(sleepers_choose(&dormitory.sleepers));
    (void)pthread_mutex_unlock(&dormitory.lock);
    sleepers_call(NULL);
    assert_int_equal(pthread_join(threads[0], NULL), 0);
    for (int i = 0; i < BEDS; i++) {
        sleepers_done(&dormitory.beds[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_take_turns),
        cmocka_unit_test(positions_tell_the_real_order),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(what_was_admitted_before_finds_room),
        cmocka_unit_test(withdrawn_jobs_do_not_run),
        cmocka_unit_test(closing_drops_what_waits),
        cmocka_unit_test(freeing_waits_for_running_jobs),
        cmocka_unit_test(a_pool_ends_while_jobs_come),
        cmocka_unit_test(many_threads_lose_no_job),
        cmocka_unit_test(threads_are_named),
        cmocka_unit_test(groups_of_a_caller_take_turns),
        cmocka_unit_test(one_caller_leaves_threads_to_others),
        cmocka_unit_test(what_is_not_settled_holds_back_its_callers_next),
        cmocka_unit_test(settled_jobs_let_the_next_start),
        cmocka_unit_test(others_that_are_engaged_hold_back_as_well),
        cmocka_unit_test(a_processor_is_left_to_those_who_come_singly),
        cmocka_unit_test(others_in_a_row_keep_nobody_from_his_share),
        cmocka_unit_test(callers_with_many_share_all_processors),
        cmocka_unit_test(the_first_of_a_flood_is_not_one_at_a_time),
        cmocka_unit_test(the_first_of_a_flood_hides_no_single_caller),
        cmocka_unit_test(what_is_ending_holds_back_no_single_job),
        cmocka_unit_test(favoured_is_who_keeps_nobody_waiting),
        cmocka_unit_test(favoured_among_others_is_one_at_a_time),
        cmocka_unit_test(one_caller_leaves_places_in_the_queue),
        cmocka_unit_test(the_wait_is_told_from_what_was_measured),
        cmocka_unit_test(jobs_wait_for_their_claims),
        cmocka_unit_test(the_last_to_sleep_is_called_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
