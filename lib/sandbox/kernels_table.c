/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels_table: a list of kernels.
 * Owns: one reference of each.
 * Threads: any; one lock, above that of a kernel.
 * May include: lib/base, lib/sandbox.
 */
#include "lib/sandbox/kernels_table.h"

#include <stdlib.h>
#include <time.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/sandbox/warm.h"
#include "lib/sandbox/warm_exit.h"

/* Each is a process of some megabytes; more than this is a leak of a client. */
#define KERNELS_MAX 256

void kernels_table_init(struct kernels_table *table)
{
    (void)pthread_mutex_init(&table->lock, NULL);
    (void)pthread_cond_init(&table->gone, NULL);
    table->first = NULL;
    table->count = 0;
}

void kernels_table_done(struct kernels_table *table)
{
    (void)pthread_cond_destroy(&table->gone);
    (void)pthread_mutex_destroy(&table->lock);
}

static bool is_of(const struct warm *warm, const char *session_id)
{
    return session_id == NULL || text_equal(warm->session_id, session_id);
}

static struct warm *find(struct kernels_table *table, const char *session_id, const char *id)
{
    struct warm *warm = table->first;

    while (warm != NULL && !(text_equal(warm->id, id) && is_of(warm, session_id))) {
        warm = warm->next;
    }
    return warm;
}

/* Under the table's lock; takes each kernel's in turn. */
static bool lives(struct warm *warm)
{
    bool alive;

    (void)pthread_mutex_lock(&warm->lock);
    alive = warm->state != KERNELS_DEAD;
    (void)pthread_mutex_unlock(&warm->lock);
    return alive;
}

static size_t count_live(struct kernels_table *table, const char *session_id)
{
    size_t count = 0;

    for (struct warm *warm = table->first; warm != NULL; warm = warm->next) {
        count += is_of(warm, session_id) && lives(warm) ? 1 : 0;
    }
    return count;
}

size_t kernels_table_count(struct kernels_table *table, const char *session_id)
{
    size_t count;

    (void)pthread_mutex_lock(&table->lock);
    count = count_live(table, session_id);
    (void)pthread_mutex_unlock(&table->lock);
    return count;
}

int kernels_table_add(struct kernels_table *table, struct warm *warm, struct err *err)
{
    int result = 0;

    (void)pthread_mutex_lock(&table->lock);
    if (find(table, warm->session_id, warm->id) != NULL) {
        result =
            err_set(err, ERR_KERNEL_EXISTS, 0, "the session has a kernel %s already", warm->id);
        (void)err_remedy(err, "choose another id, or restart or delete that one");
    } else if (count_live(table, NULL) >= KERNELS_MAX) {
        result =
            err_set(err, ERR_TOO_MANY_REQUESTS, 0, "there are %d kernels already", KERNELS_MAX);
    } else {
        warm->next = table->first;
        table->first = warm_ref(warm);
        table->count++;
    }
    (void)pthread_mutex_unlock(&table->lock);
    return result;
}

struct warm *kernels_table_find(struct kernels_table *table, const char *session_id, const char *id)
{
    struct warm *warm;

    (void)pthread_mutex_lock(&table->lock);
    warm = find(table, session_id, id);
    if (warm != NULL) {
        (void)warm_ref(warm);
    }
    (void)pthread_mutex_unlock(&table->lock);
    return warm;
}

struct warm **kernels_table_collect(struct kernels_table *table, const char *session_id,
                                    size_t *ret_count)
{
    struct warm **found;
    size_t count = 0;

    (void)pthread_mutex_lock(&table->lock);
    found = alloc_zero(table->count + 1, sizeof(struct warm *));
    for (struct warm *warm = table->first; warm != NULL; warm = warm->next) {
        if (is_of(warm, session_id)) {
            found[count++] = warm_ref(warm);
        }
    }
    (void)pthread_mutex_unlock(&table->lock);
    *ret_count = count;
    return found;
}

void kernels_table_remove(struct kernels_table *table, struct warm *warm)
{
    struct warm **at = &table->first;
    bool found;

    (void)pthread_mutex_lock(&table->lock);
    while (*at != NULL && *at != warm) {
        at = &(*at)->next;
    }
    found = *at != NULL;
    if (found) {
        *at = warm->next;
        table->count--;
    }
    (void)pthread_cond_broadcast(&table->gone);
    (void)pthread_mutex_unlock(&table->lock);
    if (found) {
        warm_unref(warm);
    }
}

static bool has_any(struct kernels_table *table, const char *session_id)
{
    struct warm *warm = table->first;

    while (warm != NULL && !is_of(warm, session_id)) {
        warm = warm->next;
    }
    return warm != NULL;
}

void kernels_table_close(struct kernels_table *table, const char *session_id, int64_t deadline)
{
    struct timespec until = { .tv_sec = deadline / CLOCK_NS_PER_S,
                              .tv_nsec = deadline % CLOCK_NS_PER_S };
    size_t count;
    struct warm **found = kernels_table_collect(table, session_id, &count);

    for (size_t i = 0; i < count; i++) {
        warm_exit_close(found[i]);
        warm_unref(found[i]);
    }
    free(found);
    (void)pthread_mutex_lock(&table->lock);
    while (has_any(table, session_id) && !clock_passed(deadline)) {
        (void)pthread_cond_clockwait(&table->gone, &table->lock, CLOCK_MONOTONIC, &until);
    }
    (void)pthread_mutex_unlock(&table->lock);
}
