/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poolkit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

void poolkit_begin(struct poolkit_scene *scene)
{
    *scene = (struct poolkit_scene){ 0 };
    (void)pthread_mutex_init(&scene->lock, NULL);
    (void)pthread_cond_init(&scene->changed, NULL);
}

void poolkit_end(struct poolkit_scene *scene)
{
    (void)pthread_cond_destroy(&scene->changed);
    (void)pthread_mutex_destroy(&scene->lock);
}

struct poolkit_job poolkit_job(struct poolkit_scene *scene, char name, uint64_t caller)
{
    return (struct poolkit_job){
        .base = { .run = poolkit_run, .drop = poolkit_drop, .caller = caller },
        .scene = scene,
        .name = name,
    };
}

void poolkit_pass(struct poolkit_scene *scene)
{
    (void)pthread_mutex_lock(&scene->lock);
    scene->waiting++;
    (void)pthread_cond_broadcast(&scene->changed);
    while (!scene->open) {
        (void)pthread_cond_wait(&scene->changed, &scene->lock);
    }
    (void)pthread_mutex_unlock(&scene->lock);
}

void poolkit_run(struct pool_job *base)
{
    struct poolkit_job *job = (struct poolkit_job *)(void *)base;
    struct poolkit_scene *scene = job->scene;

    if (job->gated) {
        poolkit_pass(scene);
    }
    (void)pthread_mutex_lock(&scene->lock);
    scene->threads[scene->done] = pthread_self();
    scene->order[scene->done++] = job->name;
    (void)pthread_cond_broadcast(&scene->changed);
    (void)pthread_mutex_unlock(&scene->lock);
}

void poolkit_drop(struct pool_job *base)
{
    struct poolkit_job *job = (struct poolkit_job *)(void *)base;

    (void)pthread_mutex_lock(&job->scene->lock);
    job->scene->dropped++;
    (void)pthread_mutex_unlock(&job->scene->lock);
}

void poolkit_submit(struct pool *pool, struct poolkit_job *job)
{
    assert_int_equal(pool_submit(pool, &job->base, NULL), 0);
}

void poolkit_wait(struct poolkit_scene *scene, const int *counter, int value)
{
    (void)pthread_mutex_lock(&scene->lock);
    while (*counter < value) {
        (void)pthread_cond_wait(&scene->changed, &scene->lock);
    }
    (void)pthread_mutex_unlock(&scene->lock);
}

void poolkit_open(struct poolkit_scene *scene)
{
    (void)pthread_mutex_lock(&scene->lock);
    scene->open = true;
    (void)pthread_cond_broadcast(&scene->changed);
    (void)pthread_mutex_unlock(&scene->lock);
}

void poolkit_count(struct poolkit_scene *scene)
{
    (void)pthread_mutex_lock(&scene->lock);
    scene->done++;
    (void)pthread_cond_broadcast(&scene->changed);
    (void)pthread_mutex_unlock(&scene->lock);
}
