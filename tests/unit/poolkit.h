/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poolkit: jobs for the tests of pools, which say who ran where and in which order, and a gate
 * that holds those who are to hold a thread.
 */
#ifndef KERND_TESTS_UNIT_POOLKIT_H
#define KERND_TESTS_UNIT_POOLKIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/pool.h"

#define POOLKIT_MOST 64

/* What all jobs of one test share. */
struct poolkit_scene {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* any of what follows */
    bool open;
    int waiting; /* jobs that came to the gate */
    int done;
    int dropped;
    char order[POOLKIT_MOST + 1];
    pthread_t threads[POOLKIT_MOST]; /* of the jobs in that order */
};

struct poolkit_job {
    struct pool_job base;
    struct poolkit_scene *scene;
    char name;
    bool gated; /* is done once the gate is open */
};

void poolkit_begin(struct poolkit_scene *scene);
/* Behind the pools whose jobs use it. */
void poolkit_end(struct poolkit_scene *scene);

struct poolkit_job poolkit_job(struct poolkit_scene *scene, char name, uint64_t caller);

/* What a job does: comes to the gate if it is gated, then writes itself down. For the run and drop
 * of jobs that have a poolkit_job as their first member. */
void poolkit_run(struct pool_job *base);
void poolkit_drop(struct pool_job *base);

/* Fails the test when the pool refuses it. */
void poolkit_submit(struct pool *pool, struct poolkit_job *job);

/* Until that counter of the scene has come to value. */
void poolkit_wait(struct poolkit_scene *scene, const int *counter, int value);

/* A job at the gate: returns when it is open. */
void poolkit_pass(struct poolkit_scene *scene);
void poolkit_open(struct poolkit_scene *scene);

/* One more job is done, of which nothing else is to be written down. */
void poolkit_count(struct poolkit_scene *scene);

#endif
