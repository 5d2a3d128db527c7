/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: tell suspended exchanges that their client is gone.
 * Owns: an epoll instance and the table of watches, not the sockets.
 * Threads: any; one lock, held for table work and epoll_ctl only.
 * May include: lib/base.
 */
#include "server/hangup.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "lib/base/alloc.h"
#include "lib/base/fd.h"

#define EVENTS_AT_ONCE 64

/* A slot is reused; the generation tells an event of an earlier user from one of the present. */
struct slot {
    void *target; /* NULL: free */
    int fd;
    uint32_t generation; /* never 0, so that no watch is HANGUP_NONE */
    size_t next_free;
};

struct hangup {
    struct hangup_calls calls;
    int epoll;
    pthread_mutex_t lock;
    struct slot *slots;
    size_t capacity;
    size_t first_free; /* capacity: none */
};

struct hangup *hangup_new(size_t capacity, const struct hangup_calls *calls, struct err *err)
{
    struct hangup *hangup;
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    if (epoll < 0) {
        (void)err_set(err, ERR_IO, errno, "epoll_create1: %s", err_errno_text(errno));
        return NULL;
    }
    hangup = alloc_zero(1, sizeof(*hangup));
    hangup->calls = *calls;
    hangup->epoll = epoll;
    hangup->slots = alloc_zero(capacity, sizeof(*hangup->slots));
    hangup->capacity = capacity;
    for (size_t i = 0; i < capacity; i++) {
        hangup->slots[i].next_free = i + 1;
    }
    (void)pthread_mutex_init(&hangup->lock, NULL);
    return hangup;
}

void hangup_free(struct hangup *hangup)
{
    if (hangup == NULL) {
        return;
    }
    fd_close(hangup->epoll);
    (void)pthread_mutex_destroy(&hangup->lock);
    free(hangup->slots);
    free(hangup);
}

int hangup_fd(const struct hangup *hangup)
{
    return hangup->epoll;
}

static uint64_t watch_of(const struct hangup *hangup, size_t index)
{
    return (uint64_t)hangup->slots[index].generation << 32 | index;
}

/* The slot of a watch if it is still that watch's, else NULL. Under the lock. */
static struct slot *find(struct hangup *hangup, uint64_t watch)
{
    size_t index = (size_t)(watch & UINT32_MAX);

    if (index >= hangup->capacity || hangup->slots[index].target == NULL ||
        watch_of(hangup, index) != watch) {
        return NULL;
    }
    return &hangup->slots[index];
}

static void release(struct hangup *hangup, struct slot *slot)
{
    (void)epoll_ctl(hangup->epoll, EPOLL_CTL_DEL, slot->fd, NULL);
    slot->target = NULL;
    slot->next_free = hangup->first_free;
    hangup->first_free = (size_t)(slot - hangup->slots);
}

static uint64_t occupy(struct hangup *hangup, int fd, void *target)
{
    size_t index = hangup->first_free;
    struct epoll_event event = { .events = EPOLLRDHUP };
    struct slot *slot;

    if (index == hangup->capacity) {
        return HANGUP_NONE;
    }
    slot = &hangup->slots[index];
    slot->generation = slot->generation == UINT32_MAX ? 1 : slot->generation + 1;
    event.data.u64 = watch_of(hangup, index);
    if (epoll_ctl(hangup->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
        return HANGUP_NONE;
    }
    hangup->first_free = slot->next_free;
    slot->target = target;
    slot->fd = fd;
    return event.data.u64;
}

uint64_t hangup_watch(struct hangup *hangup, int fd, void *target)
{
    uint64_t watch;

    (void)pthread_mutex_lock(&hangup->lock);
    watch = occupy(hangup, fd, target);
    (void)pthread_mutex_unlock(&hangup->lock);
    return watch;
}

void hangup_unwatch(struct hangup *hangup, uint64_t watch)
{
    struct slot *slot;

    if (watch == HANGUP_NONE) {
        return;
    }
    (void)pthread_mutex_lock(&hangup->lock);
    slot = find(hangup, watch);
    if (slot != NULL) {
        release(hangup, slot);
    }
    (void)pthread_mutex_unlock(&hangup->lock);
}

static void tell(struct hangup *hangup, uint64_t watch)
{
    struct slot *slot;
    void *target = NULL;

    (void)pthread_mutex_lock(&hangup->lock);
    slot = find(hangup, watch);
    if (slot != NULL) {
        target = slot->target;
        hangup->calls.hold(target);
        release(hangup, slot);
    }
    (void)pthread_mutex_unlock(&hangup->lock);
    if (target != NULL) {
        hangup->calls.gone(target);
    }
}

void hangup_dispatch(struct hangup *hangup)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int count = epoll_wait(hangup->epoll, events, EVENTS_AT_ONCE, 0);

    for (int i = 0; i < count; i++) {
        tell(hangup, events[i].data.u64);
    }
}
