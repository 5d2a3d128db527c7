/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_table: the sessions in use, in memory, each loaded from its row when first held. For
 * lib/sandbox alone; any thread.
 *
 * A hold keeps a session's entry, its open workspace and so its files. Deleting closes the door
 * (no new hold), waits for the holds there are, and takes the entry out. Lock: the table's own,
 * below the sandbox's; never held while the store is asked.
 */
#ifndef KERND_SANDBOX_SESSION_TABLE_H
#define KERND_SANDBOX_SESSION_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/sandbox/options.h"
#include "lib/sandbox/session.h"

struct session_work;
struct store;

#define SESSION_TABLE_BUCKETS 256

/* Constant while held, but for what is marked. */
struct session_entry {
    char id[SESSION_ID_SIZE];
    struct session_table *table;
    uint64_t caller;
    bool owned;
    bool readonly;   /* options.workspace_readonly, which never changes */
    char *workspace; /* name below the workspaces, or the caller's absolute path */
    char *path;      /* host path of the workspace */
    int root;        /* the same, open; -1 in an entry that only closes the door */
    int64_t created_ms;
    /* Under the table's lock: */
    enum session_state state;
    struct options options;
    int64_t updated_ms;
    int64_t used_ms;
    size_t holds;
    size_t running; /* executions */
    bool closed;    /* being deleted */
    bool frozen;    /* see session_freeze.h */
    struct session_work *work;
    struct session_entry *next;
};

struct session_table {
    pthread_mutex_t making; /* rows and owned workspaces come and go together; above the lock */
    pthread_mutex_t lock;
    pthread_cond_t released; /* some hold was given back */
    struct session_entry *buckets[SESSION_TABLE_BUCKETS];
    uint64_t generation;         /* counts deletions: a row read before one may be stale */
    struct store *store;         /* borrowed */
    const char *workspaces_path; /* borrowed */
    int workspaces;              /* borrowed */
};

void session_table_init(struct session_table *table, struct store *store, int workspaces,
                        const char *workspaces_path);
void session_table_done(struct session_table *table);

/*
 * One more hold on the session. NULL with SESSION_NOT_FOUND (also when the actor may not see it, or
 * while it is deleted), SESSION_EXPIRED, SESSION_BUSY (its setup runs; not if `creating`), IO.
 */
struct session_entry *session_table_hold(struct session_table *table,
                                         const struct session_actor *actor, const char *id,
                                         bool creating, struct err *err);

/* Gives a hold back; `use` moves the idle timer. */
void session_table_release(struct session_entry *entry, bool use);

/* As it is now, for a view; false when not in memory. options are copied. */
bool session_table_peek(struct session_table *table, const char *id, struct session_view *view);

/* Counts an execution (+1, -1) of a held session. */
void session_table_count(struct session_entry *entry, int executions);

/* Is a held session being deleted? */
bool session_table_closed(struct session_entry *entry);

/* A copy of a held session's options as they are now. The caller calls options_done. */
void session_table_options(struct session_entry *entry, struct options *ret_options);

/* Replaces options (copied) and state of a held session in memory. */
void session_table_set(struct session_entry *entry, const struct options *options,
                       int64_t updated_ms);
enum session_state session_table_state(struct session_entry *entry);
void session_table_set_state(struct session_entry *entry, enum session_state state);

/*
 * Closes the door of a session, held or not, and stops long work on its files. False: another
 * thread is at it, or it is held and only_idle. After true: session_table_wait until no hold is
 * left, then session_table_remove.
 */
bool session_table_close(struct session_table *table, const char *id, bool only_idle);
bool session_table_wait(struct session_table *table, const char *id, int64_t deadline);
void session_table_reopen(struct session_table *table, const char *id);
void session_table_remove(struct session_table *table, const char *id);

/* When a session with these options expires, 0: never. Pure. */
int64_t session_table_expiry(const struct options *options, int64_t created_ms, int64_t used_ms);

#endif
