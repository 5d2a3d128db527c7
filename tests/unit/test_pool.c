/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/pool.h"

#define MOST_JOBS 64

/* What all jobs of one test share: a gate that holds those who ask, and who came in which order. */
struct scene {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    int waiting; /* jobs at the gate */
    int done;
    int dropped;
    char order[MOST_JOBS + 1];
};

struct job {
    struct pool_job base;
    struct scene *scene;
    char name;
    bool gated;
};

static void run(struct pool_job *base)
{
    struct job *job = (struct job *)(void *)base;
    struct scene *scene = job->scene;

    (void)pthread_mutex_lock(&scene->lock);
    if (job->gated) {
        scene->waiting++;
        (void)pthread_cond_broadcast(&scene->changed);
        while (!scene->open) {
            (void)pthread_cond_wait(&scene->changed, &scene->lock);
        }
    }
    scene->order[scene->done++] = job->name;
    (void)pthread_cond_broadcast(&scene->changed);
    (void)pthread_mutex_unlock(&scene->lock);
}

static void drop(struct pool_job *base)
{
    struct job *job = (struct job *)(void *)base;

    (void)pthread_mutex_lock(&job->scene->lock);
    job->scene->dropped++;
    (void)pthread_mutex_unlock(&job->scene->lock);
}

static void scene_init(struct scene *scene)
{
    *scene = (struct scene){ 0 };
    (void)pthread_mutex_init(&scene->lock, NULL);
    (void)pthread_cond_init(&scene->changed, NULL);
}

static void wait_for(struct scene *scene, const int *counter, int value)
{
    (void)pthread_mutex_lock(&scene->lock);
    while (*counter < value) {
        (void)pthread_cond_wait(&scene->changed, &scene->lock);
    }
    (void)pthread_mutex_unlock(&scene->lock);
}

static void open_gate(struct scene *scene)
{
    (void)pthread_mutex_lock(&scene->lock);
    scene->open = true;
    (void)pthread_cond_broadcast(&scene->changed);
    (void)pthread_mutex_unlock(&scene->lock);
}

static struct job make_job(struct scene *scene, char name, uint64_t caller)
{
    return (struct job){ .base = { .run = run, .drop = drop, .caller = caller },
                         .scene = scene,
                         .name = name };
}

/* Occupies every thread of the pool until open_gate. */
static void occupy(struct pool *pool, struct scene *scene, struct job *gates, int threads)
{
    for (int i = 0; i < threads; i++) {
        gates[i] = make_job(scene, '-', 0);
        gates[i].gated = true;
        assert_int_equal(pool_submit(pool, &gates[i].base, NULL), 0);
    }
    wait_for(scene, &scene->waiting, threads);
}

/* One job for each letter: a capital is the caller, its position among equals the order. */
static void submit_letters(struct pool *pool, struct scene *scene, struct job *jobs,
                           const char *callers)
{
    for (size_t i = 0; callers[i] != '\0'; i++) {
        jobs[i] = make_job(scene, callers[i], (uint64_t)callers[i]);
        assert_int_equal(pool_submit(pool, &jobs[i].base, NULL), 0);
    }
}

static void callers_take_turns(void **state)
{
    struct scene scene;
    struct job gate;
    struct job jobs[MOST_JOBS];
    struct pool *pool = pool_new("test", 1, MOST_JOBS, NULL);

    (void)state;
    scene_init(&scene);
    occupy(pool, &scene, &gate, 1);
    submit_letters(pool, &scene, jobs, "AAAABBC");
    open_gate(&scene);
    wait_for(&scene, &scene.done, 8);
    assert_string_equal(scene.order, "-ABCABAA");
    pool_free(pool);
}

static void positions_tell_the_real_order(void **state)
{
    static const char callers[] = "AAAABBCAADBC";
    struct scene scene;
    struct job gate;
    struct job jobs[MOST_JOBS];
    struct pool *pool = pool_new("test", 1, MOST_JOBS, NULL);
    char expected[MOST_JOBS + 1] = "-";

    (void)state;
    scene_init(&scene);
    occupy(pool, &scene, &gate, 1);
    assert_int_equal(pool_position(pool, &gate.base), -1);
    submit_letters(pool, &scene, jobs, callers);
    for (size_t i = 0; callers[i] != '\0'; i++) {
        long position = pool_position(pool, &jobs[i].base);

        assert_in_range(position, 0, sizeof(callers) - 2);
        assert_int_equal(expected[position + 1], '\0');
        expected[position + 1] = callers[i];
    }
    open_gate(&scene);
    wait_for(&scene, &scene.done, (int)sizeof(callers));
    assert_string_equal(scene.order, expected);
    assert_int_equal(pool_position(pool, &jobs[0].base), -1);
    pool_free(pool);
}

static void a_full_queue_refuses(void **state)
{
    struct scene scene;
    struct job gate;
    struct job jobs[3];
    struct err err = ERR_INIT;
    struct pool_stats stats = { 0 };
    struct pool *pool = pool_new("test", 1, 2, NULL);

    (void)state;
    scene_init(&scene);
    occupy(pool, &scene, &gate, 1);
    submit_letters(pool, &scene, jobs, "AB");
    jobs[2] = make_job(&scene, 'C', 'C');
    assert_int_equal(pool_submit(pool, &jobs[2].base, &err), -1);
    assert_int_equal(err.code, ERR_QUEUE_FULL);
    pool_stats(pool, &stats);
    assert_int_equal(stats.threads, 1);
    assert_int_equal(stats.running, 1);
    assert_int_equal(stats.queued, 2);
    assert_int_equal(stats.queue_max, 2);
    open_gate(&scene);
    wait_for(&scene, &scene.done, 3);
    assert_int_equal(pool_submit(pool, &jobs[2].base, &err), 0);
    wait_for(&scene, &scene.done, 4);
    assert_string_equal(scene.order, "-ABC");
    pool_free(pool);
}

static void what_was_admitted_before_finds_room(void **state)
{
    struct scene scene;
    struct job gate;
    struct job jobs[3];
    struct err err = ERR_INIT;
    struct pool *pool = pool_new("test", 1, 2, NULL);

    (void)state;
    scene_init(&scene);
    occupy(pool, &scene, &gate, 1);
    submit_letters(pool, &scene, jobs, "AB");
    jobs[2] = make_job(&scene, 'C', 'C');
    assert_int_equal(pool_resubmit(pool, &jobs[2].base, &err), 0);
    open_gate(&scene);
    wait_for(&scene, &scene.done, 4);
    pool_close(pool);
    assert_int_equal(pool_resubmit(pool, &jobs[2].base, &err), -1);
    assert_int_equal(err.code, ERR_SHUTTING_DOWN);
    pool_free(pool);
}

static void withdrawn_jobs_do_not_run(void **state)
{
    struct scene scene;
    struct job gate;
    struct job jobs[MOST_JOBS];
    struct pool *pool = pool_new("test", 1, MOST_JOBS, NULL);

    (void)state;
    scene_init(&scene);
    occupy(pool, &scene, &gate, 1);
    assert_false(pool_withdraw(pool, &gate.base));
    submit_letters(pool, &scene, jobs, "AAABCCA");
    assert_true(pool_withdraw(pool, &jobs[1].base)); /* in the middle */
    assert_false(pool_withdraw(pool, &jobs[1].base));
    assert_true(pool_withdraw(pool, &jobs[6].base)); /* the last */
    assert_true(pool_withdraw(pool, &jobs[3].base)); /* all that its caller has */
    assert_true(pool_withdraw(pool, &jobs[4].base)); /* the first */
    assert_int_equal(pool_submit(pool, &jobs[6].base, NULL), 0);
    assert_int_equal(pool_submit(pool, &jobs[3].base, NULL), 0);
    open_gate(&scene);
    wait_for(&scene, &scene.done, 6);
    assert_string_equal(scene.order, "-ACBAA");
    assert_false(pool_withdraw(pool, &jobs[0].base));
    pool_free(pool);
    assert_int_equal(scene.dropped, 0);
}

static void closing_drops_what_waits(void **state)
{
    struct scene scene;
    struct job gates[2];
    struct job jobs[MOST_JOBS];
    struct err err = ERR_INIT;
    struct pool *pool = pool_new("test", 2, MOST_JOBS, NULL);

    (void)state;
    scene_init(&scene);
    occupy(pool, &scene, gates, 2);
    submit_letters(pool, &scene, jobs, "AAB");
    pool_close(pool);
    assert_int_equal(scene.dropped, 3);
    assert_int_equal(pool_submit(pool, &jobs[0].base, &err), -1);
    assert_int_equal(err.code, ERR_SHUTTING_DOWN);
    pool_close(pool);
    open_gate(&scene);
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
    struct scene scene;
    struct job gate;
    struct job job;
    pthread_t thread;
    struct pool *pool = pool_new("test", 1, MOST_JOBS, NULL);

    (void)state;
    scene_init(&scene);
    occupy(pool, &scene, &gate, 1);
    submit_letters(pool, &scene, &job, "A");
    assert_int_equal(pthread_create(&thread, NULL, free_pool, pool), 0);
    open_gate(&scene);
    assert_int_equal(pthread_join(thread, NULL), 0);
    /* Which of the two the waiting job met is a race, but never both and never neither. */
    assert_int_equal(scene.done + scene.dropped, 2);
    pool_free(NULL);
}

static void free_itself(struct pool_job *base)
{
    struct job *job = (struct job *)(void *)base;
    struct scene *scene = job->scene;

    free(job);
    (void)pthread_mutex_lock(&scene->lock);
    scene->done++;
    (void)pthread_cond_broadcast(&scene->changed);
    (void)pthread_mutex_unlock(&scene->lock);
}

struct submitter {
    struct pool *pool;
    struct scene *scene;
    uint64_t caller;
};

static void *submit_many(void *argument)
{
    const struct submitter *submitter = argument;

    for (int i = 0; i < 500; i++) {
        struct job *job = malloc(sizeof(*job));

        assert_non_null(job);
        *job = make_job(submitter->scene, 'x', submitter->caller);
        job->base.run = free_itself;
        assert_int_equal(pool_submit(submitter->pool, &job->base, NULL), 0);
    }
    return NULL;
}

static void many_threads_lose_no_job(void **state)
{
    struct scene scene;
    struct submitter submitters[4];
    pthread_t threads[4];
    struct pool_stats stats = { 0 };
    struct pool *pool = pool_new("test", 3, 2000, NULL);

    (void)state;
    scene_init(&scene);
    for (size_t i = 0; i < 4; i++) {
        submitters[i] = (struct submitter){ pool, &scene, i / 2 };
        assert_int_equal(pthread_create(&threads[i], NULL, submit_many, &submitters[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    wait_for(&scene, &scene.done, 2000);
    pool_stats(pool, &stats);
    assert_int_equal(stats.queued, 0);
    pool_free(pool);
}

static void read_own_name(struct pool_job *base)
{
    struct job *job = (struct job *)(void *)base;
    struct scene *scene = job->scene;

    (void)pthread_mutex_lock(&scene->lock);
    (void)pthread_getname_np(pthread_self(), scene->order, sizeof(scene->order));
    scene->done++;
    (void)pthread_cond_broadcast(&scene->changed);
    (void)pthread_mutex_unlock(&scene->lock);
}

static void threads_are_named(void **state)
{
    struct scene scene;
    struct job job;
    struct pool *pool = pool_new("averylongname", 1, 1, NULL);

    (void)state;
    scene_init(&scene);
    job = make_job(&scene, 'x', 0);
    job.base.run = read_own_name;
    assert_int_equal(pool_submit(pool, &job.base, NULL), 0);
    wait_for(&scene, &scene.done, 1);
    assert_string_equal(scene.order, "averylongnam-0");
    pool_free(pool);
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
        cmocka_unit_test(many_threads_lose_no_job),
        cmocka_unit_test(threads_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
