/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: wait for sockets, let libmicrohttpd handle them, do on the same thread what comes of it.
 * Owns: libmicrohttpd's daemon, the event threads, what these wait for.
 * Threads: its own; one lock, around all of libmicrohttpd but the mark of a resume. Only who adds a
 * socket waits for it: others who find it taken leave word for the one who has it.
 * May include: lib/base, libmicrohttpd.
 */
#include "server/loop.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/base/fd.h"
#include "lib/base/pool.h"

#define WATCHES 2
#define SOURCES 3  /* that the first watch waits for */
#define ROUNDS 8   /* of libmicrohttpd by one thread at once: an answer takes two or three */
#define SINGLES 16 /* after so many requests that came one at a time, so will the next one */
#define MS_PER_S 1000

/* A place to wait at, which one thread has at a time: a job that submits itself again. */
struct watch {
    struct pool_job job;
    struct loop *loop;
    int epoll;
};

struct loop {
    struct MHD_Daemon *daemon;
    struct pool *pool;
    struct watch first;       /* waits for sockets, the bell and the timer */
    struct watch stand_in;    /* waits for the first one's epoll, while its thread works */
    atomic_bool first_works;  /* on what it has read itself */
    atomic_bool has_answered; /* that thread, since it began */
    atomic_bool wanted;       /* there is something that the lock's owner may not have seen */
    atomic_bool adding;       /* a new socket waits for the lock */
    int bell;                 /* an eventfd: somebody is wanted */
    int timer;                /* a connection may have been silent for too long */
    pthread_mutex_t lock;     /* to run libmicrohttpd, and the rest: */
    int64_t timer_ns;         /* when it rings, as clock_mono_ns */
    unsigned found;           /* requests, in this turn */
    uint64_t singles;         /* so many came one at a time, up to now */
};

/* What the calling thread is to a loop. */
enum role {
    STRANGER,
    WATCHING,    /* at the first watch, in a turn */
    STANDING_IN, /* at the other one */
    WORKING,     /* on what it found */
};

static _Thread_local enum role role;

/* Wakes one thread. Each write is an edge for epoll, nobody has to read it (epoll(7)). */
static void ring(struct loop *loop)
{
    const uint64_t one = 1;

    (void)!write(loop->bell, &one, sizeof(one));
}

/* ---- libmicrohttpd ---- */

/*
 * Locked. Deadlines of connections move with each byte; the timer is not moved with them, it rings
 * early and is set again. Without connections it is not.
 */
static void set_timer(struct loop *loop, uint64_t ms)
{
    const int64_t now_ns = clock_mono_ns();
    const int64_t due_ns = now_ns + (int64_t)ms * CLOCK_NS_PER_MS;
    const struct itimerspec after = {
        .it_value = { .tv_sec = (time_t)(ms / MS_PER_S),
                      .tv_nsec = (long)(ms % MS_PER_S * CLOCK_NS_PER_MS) },
    };

    if (loop->timer_ns <= now_ns || loop->timer_ns > due_ns) {
        loop->timer_ns = due_ns;
        (void)timerfd_settime(loop->timer, 0, &after, NULL);
    }
}

/* Locked. One round: a reply is made in one and sent in the next. */
static void run_daemon(struct loop *loop)
{
    MHD_UNSIGNED_LONG_LONG ms = 0;

    (void)MHD_run(loop->daemon);
    if (MHD_get_timeout(loop->daemon, &ms) != MHD_YES) {
        return;
    }
    if (ms == 0) {
        atomic_store(&loop->wanted, true);
    } else {
        set_timer(loop, ms);
    }
}

/*
 * Has libmicrohttpd handle what there is, or leaves that to the thread that has it just now: that
 * one looks at `wanted` behind the lock, so that nothing is forgotten.
 */
static void handle(struct loop *loop)
{
    int rounds = 0;

    atomic_store(&loop->wanted, true);
    while (rounds < ROUNDS && atomic_load(&loop->wanted) && !atomic_load(&loop->adding) &&
           pthread_mutex_trylock(&loop->lock) == 0) {
        atomic_store(&loop->wanted, false);
        loop->found = rounds == 0 ? 0 : loop->found;
        run_daemon(loop);
        (void)pthread_mutex_unlock(&loop->lock);
        rounds++;
    }
    /* Another one's turn: this thread has to get on with what it does. */
    if (rounds == ROUNDS && atomic_load(&loop->wanted)) {
        ring(loop);
    }
}

/* The same, by one of the loop's threads. */
static void have_handled(struct loop *loop)
{
    atomic_store(&loop->wanted, true);
    if (pthread_mutex_trylock(&loop->lock) == 0) {
        (void)pthread_mutex_unlock(&loop->lock);
        ring(loop);
    }
}

/* ---- the threads ---- */

/* On: for one event, or at once if there is one already (epoll_ctl(2), EPOLLONESHOT). */
static void let_stand_in(struct loop *loop, bool on)
{
    struct epoll_event event = { .events = on ? EPOLLIN | EPOLLONESHOT : 0 };

    (void)epoll_ctl(loop->stand_in.epoll, EPOLL_CTL_MOD, loop->first.epoll, &event);
}

/* Within the turn: the other watch's thread is awake as soon as something comes, and not before. */
static void work_within(struct loop *loop)
{
    atomic_store(&loop->has_answered, false);
    atomic_store(&loop->first_works, true);
    let_stand_in(loop, true);
    pool_go_on();
    atomic_store(&loop->first_works, false);
    let_stand_in(loop, false);
}

static void take_turn(struct loop *loop, bool goes_on)
{
    role = goes_on ? WATCHING : STANDING_IN;
    handle(loop);
    role = WORKING;
}

/*
 * The first watch's thread handles what it has made itself, and goes on with the next request
 * behind its job if that is there already. With an answer sent libmicrohttpd waits for the
 * connection again, which can be written to: an event that is nobody's, so it is taken here before
 * the other watch's thread may be woken.
 */
static void answer_within(struct loop *loop)
{
    struct epoll_event events[SOURCES];

    atomic_store(&loop->has_answered, true);
    let_stand_in(loop, false);
    take_turn(loop, true);
    if (epoll_wait(loop->first.epoll, events, SOURCES, 0) > 0) {
        take_turn(loop, true);
    }
    let_stand_in(loop, true);
}

/* To the next turn. */
static void pass_on(struct watch *watch)
{
    struct loop *loop = watch->loop;

    if (pool_resubmit(loop->pool, &watch->job, NULL) < 0) {
        /* The loop ends: the other watch, too. */
        let_stand_in(loop, true);
        ring(loop);
    }
}

static void watch_first(struct pool_job *job)
{
    struct watch *self = CONTAINER_OF(job, struct watch, job);
    struct epoll_event event;

    (void)epoll_wait(self->epoll, &event, 1, -1);
    take_turn(self->loop, true);
    if (pool_goes_on()) {
        work_within(self->loop);
    }
    pass_on(self);
}

/*
 * What it reads is for the lane: somebody has to be here as long as the first thread works. The
 * edges that woke it are taken from the first watch's epoll, which would be ready for ever.
 */
static void stand_in(struct pool_job *job)
{
    struct watch *self = CONTAINER_OF(job, struct watch, job);
    struct loop *loop = self->loop;
    struct epoll_event events[SOURCES];

    (void)epoll_wait(self->epoll, events, 1, -1);
    (void)epoll_wait(loop->first.epoll, events, SOURCES, 0);
    take_turn(loop, false);
    if (atomic_load(&loop->first_works)) {
        let_stand_in(loop, true);
    }
    pass_on(self);
}

static void drop(struct pool_job *job)
{
    (void)job;
}

/* ---- start and stop ---- */

static int wait_for(const struct watch *watch, int fd, uint32_t events)
{
    struct epoll_event event = { .events = events };

    return epoll_ctl(watch->epoll, EPOLL_CTL_ADD, fd, &event);
}

static int open_descriptors(struct loop *loop, struct err *err)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    const uint32_t edges = EPOLLIN | EPOLLET;

    loop->first.epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->stand_in.epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->first.epoll < 0 || loop->stand_in.epoll < 0 || loop->bell < 0 || loop->timer < 0 ||
        info == NULL || wait_for(&loop->first, info->epoll_fd, edges) < 0 ||
        wait_for(&loop->first, loop->bell, edges) < 0 ||
        wait_for(&loop->first, loop->timer, edges) < 0 ||
        wait_for(&loop->stand_in, loop->first.epoll, 0) < 0) {
        return err_set(err, ERR_IO, errno, "the event loop: %s", err_errno_text(errno));
    }
    return 0;
}

static int start_threads(struct loop *loop, struct err *err)
{
    loop->pool = pool_new("kernd-event", WATCHES, WATCHES, err);
    if (loop->pool == NULL) {
        return -1;
    }
    pool_stay(loop->pool);
    if (pool_submit(loop->pool, &loop->first.job, err) < 0) {
        return -1;
    }
    return pool_submit(loop->pool, &loop->stand_in.job, err);
}

static void end_threads(struct loop *loop)
{
    if (loop->pool != NULL) {
        pool_close(loop->pool);
        let_stand_in(loop, true);
        ring(loop);
        pool_free(loop->pool);
    }
}

static void release(struct loop *loop)
{
    fd_close(loop->timer);
    fd_close(loop->bell);
    fd_close(loop->stand_in.epoll);
    fd_close(loop->first.epoll);
    (void)pthread_mutex_destroy(&loop->lock);
    free(loop);
}

void loop_free(struct loop *loop)
{
    end_threads(loop);
    MHD_stop_daemon(loop->daemon);
    release(loop);
}

struct loop *loop_new(struct MHD_Daemon *daemon, struct err *err)
{
    struct loop *loop = alloc_zero(1, sizeof(*loop));

    loop->daemon = daemon;
    loop->first = (struct watch){ .job = { .run = watch_first, .drop = drop }, .loop = loop };
    loop->stand_in = (struct watch){ .job = { .run = stand_in, .drop = drop }, .loop = loop };
    atomic_init(&loop->first_works, false);
    atomic_init(&loop->has_answered, false);
    (void)pthread_mutex_init(&loop->lock, NULL);
    atomic_init(&loop->wanted, false);
    atomic_init(&loop->adding, false);
    if (open_descriptors(loop, err) < 0 || start_threads(loop, err) < 0) {
        loop_free(loop);
        return NULL;
    }
    return loop;
}

/* ---- for others ---- */

int loop_add(struct loop *loop, int fd, const struct sockaddr *address, socklen_t size)
{
    enum MHD_Result added;

    /* Who lets go of the lock and takes it again would be faster each time (a mutex is not fair).
     */
    atomic_store(&loop->adding, true);
    (void)pthread_mutex_lock(&loop->lock);
    atomic_store(&loop->adding, false);
    added = MHD_add_connection(loop->daemon, fd, address, size);
    (void)pthread_mutex_unlock(&loop->lock);
    ring(loop);
    return added == MHD_YES ? 0 : -1;
}

void loop_resume(struct loop *loop, struct MHD_Connection *connection)
{
    MHD_resume_connection(connection);
    have_handled(loop);
}

void loop_answer(struct loop *loop, struct MHD_Connection *connection)
{
    MHD_resume_connection(connection);
    if (role == WORKING) {
        answer_within(loop);
    } else {
        have_handled(loop);
    }
}

/*
 * A thread that works on what it read is missed where requests come side by side: they wait for the
 * other thread to wake up, and one batch of them becomes many. One that comes while the first
 * thread has answered and not returned yet is of somebody quick.
 */
bool loop_goes_on(struct loop *loop)
{
    const bool is_alone = role == WATCHING && loop->found == 0;

    loop->found++;
    if (is_alone) {
        loop->singles++;
    } else if (loop->found > 1 || !atomic_load(&loop->has_answered)) {
        loop->singles = 0;
    }
    return is_alone && loop->singles > SINGLES;
}
