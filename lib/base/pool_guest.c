/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_guest: jobs of one pool on threads of another.
 * Owns: nothing; what a thread goes on with is its own.
 * Threads: those of pools; the lock of the host's pool, and never that of the job's beside it.
 * May include: libc.
 */
#include "lib/base/clock.h"
#include "lib/base/pool_internal.h"

static _Thread_local struct pool_thread *own;

void pool_guest_enter(struct pool_thread *self)
{
    own = self;
}

struct pool_thread *pool_guest_taker(void)
{
    return own != NULL && own->guest.job != NULL ? own : NULL;
}

/* Locked. Are there, without this one, as many threads at home as jobs may run? */
static bool can_spare_one(struct pool *pool)
{
    if (pool->ending || pool->away >= pool->away_max) {
        return false;
    }
    return pool->thread_count - pool->away > pool->seats || pool_start_thread(pool) == 0;
}

struct pool_thread *pool_guest_host(void)
{
    struct pool_thread *self = own;

    if (self == NULL || self->guest.job != NULL) {
        return NULL;
    }
    if (self->pool->stays) {
        return self;
    }
    if (!self->away) {
        (void)pthread_mutex_lock(&self->pool->lock);
        self->away = can_spare_one(self->pool);
        self->pool->away += self->away ? 1 : 0;
        (void)pthread_mutex_unlock(&self->pool->lock);
    }
    return self->away ? self : NULL;
}

static void come_back(struct pool_thread *host)
{
    if (!host->away) {
        return;
    }
    host->away = false;
    (void)pthread_mutex_lock(&host->pool->lock);
    host->pool->away--;
    (void)pthread_mutex_unlock(&host->pool->lock);
}

void pool_guest_stay(struct pool_thread *host)
{
    if (!host->running_guest) {
        come_back(host);
    }
}

bool pool_guest_take(struct pool *pool, struct pool_job *job, struct pool_thread *host)
{
    if (pool_turn_take(pool, &host->guest.worker) == NULL) {
        return false;
    }
    host->guest.pool = pool;
    host->guest.job = job;
    pool->guests++;
    return true;
}

void pool_guest_run(struct pool_thread *host)
{
    host->running_guest = true;
    while (host->guest.job != NULL) {
        struct pool_guest guest = host->guest;
        const int64_t began_ns = clock_mono_ns();

        host->guest.job = NULL; /* it may go on with another one */
        guest.job->worker = &guest.worker;
        guest.job->run(guest.job);
        pool_leave_guest(guest.pool, &guest.worker, began_ns);
    }
    host->running_guest = false;
    come_back(host);
}
