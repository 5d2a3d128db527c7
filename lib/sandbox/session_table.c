/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_table: holds on sessions.
 * Owns: the entries, their open workspaces.
 * Threads: any; one lock, never held across the store or the disk.
 * May include: lib/base, lib/store, lib/work, lib/sandbox.
 */
#include "lib/sandbox/session_table.h"

#include <stdio.h>
#include <time.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/sandbox/session_entry.h"
#include "lib/sandbox/session_work.h"
#include "lib/store/rows_session.h"

#define MS_PER_S 1000.0
/* Ten thousand years: a timer beyond it is no timer. */
#define EXPIRY_S_MAX 3.0e11

void session_table_init(struct session_table *table, struct store *store, int workspaces,
                        const char *workspaces_path)
{
    (void)pthread_mutex_init(&table->making, NULL);
    (void)pthread_mutex_init(&table->lock, NULL);
    (void)pthread_cond_init(&table->released, NULL);
    table->store = store;
    table->workspaces = workspaces;
    table->workspaces_path = workspaces_path;
}

void session_table_done(struct session_table *table)
{
    for (size_t i = 0; i < SESSION_TABLE_BUCKETS; i++) {
        while (table->buckets[i] != NULL) {
            struct session_entry *entry = table->buckets[i];

            table->buckets[i] = entry->next;
            session_entry_free(entry);
        }
    }
    (void)pthread_cond_destroy(&table->released);
    (void)pthread_mutex_destroy(&table->lock);
    (void)pthread_mutex_destroy(&table->making);
}

/* FNV-1a: ids are short, and whoever chooses them badly slows only himself. */
static struct session_entry **bucket_of(struct session_table *table, const char *id)
{
    uint32_t hash = 2166136261U;

    for (; *id != '\0'; id++) {
        hash = (hash ^ (unsigned char)*id) * 16777619U;
    }
    return &table->buckets[hash % SESSION_TABLE_BUCKETS];
}

static struct session_entry *find(struct session_table *table, const char *id)
{
    struct session_entry *entry = *bucket_of(table, id);

    while (entry != NULL && !text_equal(entry->id, id)) {
        entry = entry->next;
    }
    return entry;
}

static void insert(struct session_table *table, struct session_entry *entry)
{
    struct session_entry **bucket = bucket_of(table, entry->id);

    entry->table = table;
    entry->next = *bucket;
    *bucket = entry;
}

static void take_out(struct session_table *table, struct session_entry *entry)
{
    struct session_entry **at = bucket_of(table, entry->id);

    while (*at != entry) {
        at = &(*at)->next;
    }
    *at = entry->next;
}

int64_t session_table_expiry(const struct options *options, int64_t created_ms, int64_t used_ms)
{
    int64_t end = 0;

    if (options->ttl_s > 0 && options->ttl_s < EXPIRY_S_MAX) {
        end = created_ms + (int64_t)(options->ttl_s * MS_PER_S);
    }
    if (options->idle_timeout_s > 0 && options->idle_timeout_s < EXPIRY_S_MAX) {
        int64_t idle = used_ms + (int64_t)(options->idle_timeout_s * MS_PER_S);

        end = end == 0 || idle < end ? idle : end;
    }
    return end;
}

static int check(const struct session_entry *entry, const struct session_actor *actor,
                 bool creating, struct err *err)
{
    if (entry->closed || (!actor->all && entry->caller != actor->caller)) {
        return err_set(err, ERR_SESSION_NOT_FOUND, 0, "there is no session %s", entry->id);
    }
    if (entry->state == SESSION_CREATING && !creating) {
        (void)err_set(err, ERR_SESSION_BUSY, 0, "the session's setup is still running");
        return err_remedy(err, "wait until GET of the session says \"ready\"");
    }
    return 0;
}

/* One more hold on an entry in memory: 1 taken, 0 not in memory, -1 refused. Locked. */
static int hold_known(struct session_table *table, const struct session_actor *actor,
                      const char *id, bool creating, struct session_entry **ret_entry,
                      struct err *err)
{
    struct session_entry *entry;

    while ((entry = find(table, id)) != NULL && entry->frozen) {
        (void)pthread_cond_wait(&table->released, &table->lock);
    }
    if (entry == NULL) {
        return 0;
    }
    if (check(entry, actor, creating, err) < 0) {
        return -1;
    }
    entry->holds++;
    *ret_entry = entry;
    return 1;
}

/* An entry that was loaded only to be refused goes again. Locked. */
static void drop_unused(struct session_table *table, const char *id)
{
    struct session_entry *entry = find(table, id);

    if (entry != NULL && entry->holds == 0 && !entry->closed) {
        take_out(table, entry);
        session_entry_free(entry);
    }
}

struct session_entry *session_table_hold(struct session_table *table,
                                         const struct session_actor *actor, const char *id,
                                         bool creating, struct err *err)
{
    struct session_entry *entry = NULL;

    (void)pthread_mutex_lock(&table->lock);
    for (;;) {
        uint64_t generation = table->generation;
        struct session_entry *loaded;
        int known = hold_known(table, actor, id, creating, &entry, err);

        if (known != 0) {
            drop_unused(table, id);
            break;
        }
        (void)pthread_mutex_unlock(&table->lock);
        loaded = session_entry_load(table, actor, id, err);
        if (loaded == NULL) {
            return NULL;
        }
        (void)pthread_mutex_lock(&table->lock);
        if (generation == table->generation && find(table, id) == NULL) {
            insert(table, loaded);
        } else {
            session_entry_free(loaded); /* somebody was faster, or it may be gone: look again */
        }
    }
    (void)pthread_mutex_unlock(&table->lock);
    return entry;
}

void session_table_release(struct session_entry *entry, bool use)
{
    struct session_table *table = entry->table;
    bool last;

    (void)pthread_mutex_lock(&table->lock);
    if (use) {
        entry->used_ms = clock_wall_ms();
    }
    if (use && !entry->closed) {
        rows_session_touch_soon(
            table->store, entry->id, entry->used_ms,
            session_table_expiry(&entry->options, entry->created_ms, entry->used_ms));
    }
    entry->holds--;
    last = entry->holds == 0 && !entry->closed;
    if (last) {
        take_out(table, entry);
    }
    (void)pthread_cond_broadcast(&table->released);
    (void)pthread_mutex_unlock(&table->lock);
    if (last) {
        session_entry_free(entry);
    }
}

bool session_table_peek(struct session_table *table, const char *id, struct session_view *view)
{
    struct session_entry *entry;

    (void)pthread_mutex_lock(&table->lock);
    entry = find(table, id);
    if (entry != NULL && entry->root >= 0) {
        view->used_ms = entry->used_ms;
    }
    if (entry != NULL && entry->closed) {
        view->state = SESSION_DELETING;
    }
    (void)pthread_mutex_unlock(&table->lock);
    return entry != NULL;
}

void session_table_count(struct session_entry *entry, int executions)
{
    (void)pthread_mutex_lock(&entry->table->lock);
    entry->running += (size_t)executions; /* wraps around as meant for -1 */
    (void)pthread_mutex_unlock(&entry->table->lock);
}

bool session_table_closed(struct session_entry *entry)
{
    bool closed;

    (void)pthread_mutex_lock(&entry->table->lock);
    closed = entry->closed;
    (void)pthread_mutex_unlock(&entry->table->lock);
    return closed;
}

void session_table_options(struct session_entry *entry, struct options *ret_options)
{
    (void)pthread_mutex_lock(&entry->table->lock);
    options_copy(ret_options, &entry->options);
    (void)pthread_mutex_unlock(&entry->table->lock);
}

void session_table_set(struct session_entry *entry, const struct options *options,
                       int64_t updated_ms)
{
    (void)pthread_mutex_lock(&entry->table->lock);
    options_done(&entry->options);
    options_copy(&entry->options, options);
    entry->updated_ms = updated_ms;
    (void)pthread_mutex_unlock(&entry->table->lock);
}

enum session_state session_table_state(struct session_entry *entry)
{
    enum session_state state;

    (void)pthread_mutex_lock(&entry->table->lock);
    state = entry->state;
    (void)pthread_mutex_unlock(&entry->table->lock);
    return state;
}

void session_table_set_state(struct session_entry *entry, enum session_state state)
{
    (void)pthread_mutex_lock(&entry->table->lock);
    entry->state = state;
    (void)pthread_mutex_unlock(&entry->table->lock);
}

bool session_table_close(struct session_table *table, const char *id, bool only_idle)
{
    struct session_entry *entry;
    bool mine = false;

    (void)pthread_mutex_lock(&table->lock);
    entry = find(table, id);
    if (entry == NULL) {
        entry = alloc_zero(1, sizeof(*entry));
        (void)snprintf(entry->id, sizeof(entry->id), "%s", id);
        entry->root = -1;
        insert(table, entry);
    }
    if (!entry->closed && !(only_idle && entry->holds > 0)) {
        entry->closed = true;
        session_work_stop(entry);
        mine = true;
    }
    (void)pthread_mutex_unlock(&table->lock);
    return mine;
}

bool session_table_wait(struct session_table *table, const char *id, int64_t deadline)
{
    struct timespec until = { .tv_sec = deadline / CLOCK_NS_PER_S,
                              .tv_nsec = deadline % CLOCK_NS_PER_S };
    struct session_entry *entry;
    bool free_of_holds;

    (void)pthread_mutex_lock(&table->lock);
    while ((entry = find(table, id)) != NULL && entry->holds > 0 && !clock_passed(deadline)) {
        (void)pthread_cond_clockwait(&table->released, &table->lock, CLOCK_MONOTONIC, &until);
    }
    free_of_holds = entry == NULL || entry->holds == 0;
    (void)pthread_mutex_unlock(&table->lock);
    return free_of_holds;
}

/* Takes an entry without holds out of the table, or opens the door of one that has some. */
static void settle(struct session_table *table, const char *id, bool deleted)
{
    struct session_entry *entry;

    (void)pthread_mutex_lock(&table->lock);
    entry = find(table, id);
    if (entry != NULL && entry->holds > 0) {
        entry->closed = false;
        entry = NULL;
    }
    if (entry != NULL) {
        take_out(table, entry);
    }
    table->generation += deleted ? 1 : 0;
    (void)pthread_mutex_unlock(&table->lock);
    session_entry_free(entry);
}

void session_table_reopen(struct session_table *table, const char *id)
{
    settle(table, id, false);
}

void session_table_remove(struct session_table *table, const char *id)
{
    settle(table, id, true);
}
