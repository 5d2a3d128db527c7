/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spares: taking from the shelves and emptying them.
 * Owns: the shelves, their spares, and the lane that boots them.
 * Threads: any; boxes are started and ended outside the lock.
 * May include: all of lib.
 */
#include "lib/sandbox/spares.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/sandbox/guest_env.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/shelf.h"
#include "lib/sandbox/spares_internal.h"

#define LANE_THREADS 2
#define LANE_QUEUE 64
#define SHELVES_MAX 256
#define IDLE_NS (60 * CLOCK_NS_PER_S)
#define QUIET_NS (5 * CLOCK_NS_PER_S)

struct spares *spares_new(struct sandbox *sandbox, size_t max, struct err *err)
{
    struct spares *spares = alloc_zero(1, sizeof(*spares));

    if (cancel_init(&spares->cancel, err) < 0) {
        free(spares);
        return NULL;
    }
    spares->sandbox = sandbox;
    spares->max = max;
    spares->lane = pool_new("spare", LANE_THREADS, LANE_QUEUE, err);
    if (spares->lane == NULL) {
        cancel_done(&spares->cancel);
        free(spares);
        return NULL;
    }
    (void)pthread_mutex_init(&spares->lock, NULL);
    return spares;
}

static void discard_all(struct spare *spare)
{
    while (spare != NULL) {
        struct spare *next = spare->next;

        spare_free(spare);
        spare = next;
    }
}

static struct spare *chain(struct spare *some, struct spare *others)
{
    while (some != NULL) {
        struct spare *next = some->next;

        some->next = others;
        others = some;
        some = next;
    }
    return others;
}

/* Locked: empties a shelf; the spares are the caller's to discard outside the lock. */
static struct spare *empty(struct spares *spares, struct shelf *shelf)
{
    struct spare *first = CLEANUP_TAKE(shelf->first);

    spares->waiting -= shelf->count;
    shelf->count = 0;
    return first;
}

/* Locked: takes shelves that `match` says out of the list; returns all their spares in one chain.
 */
static struct spare *take_shelves(struct spares *spares,
                                  bool (*match)(const struct shelf *shelf, const void *what),
                                  const void *what)
{
    struct spare *all = NULL;
    struct shelf **at = &spares->shelves;

    while (*at != NULL) {
        struct shelf *shelf = *at;

        if (!match(shelf, what)) {
            at = &shelf->next;
            continue;
        }
        *at = shelf->next;
        spares->shelf_count--;
        shelf->closed = true;
        all = chain(empty(spares, shelf), all);
        shelf_release(shelf);
    }
    return all;
}

/* ---- taking ---- */

/* Locked. The shelf of this call; with `make`, made if there is room for one more. */
static struct shelf *find_shelf(struct spares *spares, const struct boxing *boxing, bool make)
{
    struct shelf *shelf = spares->shelves;

    while (shelf != NULL && !shelf_fits(shelf, boxing)) {
        shelf = shelf->next;
    }
    if (shelf == NULL && make && spares->shelf_count < SHELVES_MAX && !spares->closed) {
        shelf = shelf_new(spares, boxing);
        shelf->next = spares->shelves;
        spares->shelves = shelf;
        spares->shelf_count++;
    }
    return shelf;
}

/*
 * Locked. The newest one: its pages are the warmest. An interpreter that would have to start with
 * another environment is of no use for this call; all on a shelf were booted with the same.
 */
static struct spare *pop(struct spares *spares, struct shelf *shelf, const struct strv *env)
{
    struct spare *spare = shelf->first;

    if (spare != NULL && shelf->driver && !guest_env_change(&spare->env, env, &spare->change)) {
        strv_done(&spare->change);
        return NULL;
    }
    if (spare != NULL) {
        shelf->first = spare->next;
        spare->next = NULL;
        shelf->count--;
        spares->waiting--;
    }
    return spare;
}

static struct spare *take(struct spares *spares, const struct boxing *boxing, bool make)
{
    CLEANUP_STRV struct strv env = { 0 };
    struct spare *spare;
    bool usable = false;

    if (spares->max == 0 || !shelf_fits_any(boxing)) {
        return NULL;
    }
    boxing_env(boxing, &env);
    do {
        struct shelf *shelf;

        (void)pthread_mutex_lock(&spares->lock);
        shelf = find_shelf(spares, boxing, make);
        spare = shelf == NULL ? NULL : pop(spares, shelf, &env);
        if (shelf != NULL) {
            shelf->used_ns = clock_mono_ns();
        }
        if (shelf != NULL && spare == NULL) {
            shelf_missed(shelf);
        }
        (void)pthread_mutex_unlock(&spares->lock);
        usable = spare != NULL && spare_arm(spare, boxing->request);
        if (spare != NULL && !usable) {
            spare_free(spare);
        }
    } while (spare != NULL && !usable);
    (void)pthread_mutex_lock(&spares->lock);
    spares->hits += spare != NULL ? 1 : 0;
    spares->misses += spare == NULL ? 1 : 0;
    (void)pthread_mutex_unlock(&spares->lock);
    return spare;
}

struct spare *spares_take(struct spares *spares, const struct boxing *boxing)
{
    return take(spares, boxing, true);
}

struct spare *spares_take_other(struct spares *spares, const struct boxing *boxing)
{
    return take(spares, boxing, false);
}

/* ---- emptying ---- */

static bool is_of_session(const struct shelf *shelf, const void *what)
{
    return text_equal(shelf->session_id, what);
}

void spares_drop_session(struct spares *spares, const char *session_id)
{
    struct spare *all;

    (void)pthread_mutex_lock(&spares->lock);
    all = take_shelves(spares, is_of_session, session_id);
    (void)pthread_mutex_unlock(&spares->lock);
    discard_all(all);
}

static bool has_environment(const struct shelf *shelf, const void *what)
{
    return text_equal(shelf->like->environment, what);
}

void spares_drop_environment(struct spares *spares, const char *id)
{
    struct spare *all;

    (void)pthread_mutex_lock(&spares->lock);
    all = take_shelves(spares, has_environment, id);
    (void)pthread_mutex_unlock(&spares->lock);
    discard_all(all);
}

/* Locked. What was kept beyond the first target for calls that no longer come. */
static struct spare *take_surplus(struct spares *spares, int64_t now_ns)
{
    struct spare *all = NULL;

    for (struct shelf *shelf = spares->shelves; shelf != NULL; shelf = shelf->next) {
        const size_t before = shelf->count;

        if (shelf->target > shelf->target_least && shelf->used_ns + QUIET_NS < now_ns) {
            all = chain(shelf_shrink(shelf), all);
            spares->waiting -= before - shelf->count;
        }
    }
    return all;
}

static bool is_unused(const struct shelf *shelf, const void *what)
{
    return shelf->used_ns + IDLE_NS < *(const int64_t *)what;
}

void spares_age(struct spares *spares, int64_t now_ns)
{
    struct spare *all;

    (void)pthread_mutex_lock(&spares->lock);
    all = chain(take_surplus(spares, now_ns), take_shelves(spares, is_unused, &now_ns));
    (void)pthread_mutex_unlock(&spares->lock);
    discard_all(all);
    spares_refill(spares);
}

/* The shelves stay: they are filled again when nothing waits any more. */
static struct spare *take_all(struct spares *spares)
{
    struct spare *all = NULL;

    (void)pthread_mutex_lock(&spares->lock);
    for (struct shelf *shelf = spares->shelves; shelf != NULL; shelf = shelf->next) {
        all = chain(empty(spares, shelf), all);
    }
    (void)pthread_mutex_unlock(&spares->lock);
    return all;
}

void spares_give_way(struct spares *spares)
{
    discard_all(take_all(spares));
}

static bool is_any(const struct shelf *shelf, const void *what)
{
    (void)shelf;
    (void)what;
    return true;
}

void spares_free(struct spares *spares)
{
    struct spare *all;

    if (spares == NULL) {
        return;
    }
    cancel_fire(&spares->cancel, CANCEL_SHUTDOWN);
    (void)pthread_mutex_lock(&spares->lock);
    spares->closed = true;
    all = take_shelves(spares, is_any, NULL);
    (void)pthread_mutex_unlock(&spares->lock);
    discard_all(all);
    pool_free(spares->lane);
    (void)pthread_mutex_destroy(&spares->lock);
    cancel_done(&spares->cancel);
    free(spares);
}

void spares_stats(struct spares *spares, struct spares_stats *ret_stats)
{
    (void)pthread_mutex_lock(&spares->lock);
    *ret_stats = (struct spares_stats){ .waiting = spares->waiting,
                                        .hits = spares->hits,
                                        .misses = spares->misses };
    (void)pthread_mutex_unlock(&spares->lock);
}
