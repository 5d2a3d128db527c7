/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_internal: the body of the store, for lib/store alone.
 *
 * One connection (NOMUTEX), one lock: store_enter and store_leave around every use of it. The queue
 * of the writer has a lock of its own, taken before the store's if both are needed.
 */
#ifndef KERND_STORE_STORE_INTERNAL_H
#define KERND_STORE_STORE_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>

#include "lib/store/store.h"
#include "lib/store/writer.h"

#define STORE_KEPT_MAX 48

/* A prepared statement that lives as long as the connection, found by its text's address. */
struct store_kept {
    const char *sql;
    sqlite3_stmt *handle;
};

struct checkup;

struct store {
    pthread_mutex_t lock;
    sqlite3 *connection;
    struct store_kept kept[STORE_KEPT_MAX];
    size_t kept_count;
    struct writer *writer;
    struct writer_job started; /* the mark of a server that has not stopped */
    struct checkup *checkup;   /* NULL after a clean stop */
    int lock_fd;
    bool was_unclean;
};

void store_enter(struct store *store);
void store_leave(struct store *store);

/* Between enter and leave. Runs SQL without parameters or rows. 0 or -1. */
int store_run(struct store *store, const char *sql, struct err *err);

/*
 * A write transaction between enter and leave: store_begin, then exactly one of store_commit (which
 * rolls back if it fails) and store_rollback. It begins IMMEDIATE: one that first reads and then
 * wants to write would fail at once when an outside shell holds the lock.
 */
int store_begin(struct store *store, struct err *err);
int store_commit(struct store *store, struct err *err);
void store_rollback(struct store *store);

/* Sets err by SQLite's result code and the connection's message. Always -1. */
int store_fail(struct store *store, int code, struct err *err);

#endif
