/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store: opening, migrating, checking and closing the database; the lock of the state directory.
 * Owns: the one connection, its lock, the lock file.
 * Threads: any.
 * May include: base.
 */
#include "lib/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/store/checkup.h"
#include "lib/store/schema.h"
#include "lib/store/statement.h"
#include "lib/store/store_internal.h"
#include "lib/store/writer.h"

#define BUSY_TIMEOUT_MS 2000 /* for an outside sqlite3 shell; inside there is one connection */

void store_enter(struct store *store)
{
    (void)pthread_mutex_lock(&store->lock);
}

void store_leave(struct store *store)
{
    (void)pthread_mutex_unlock(&store->lock);
}

int store_fail(struct store *store, int code, struct err *err)
{
    int sys = store->connection != NULL ? sqlite3_system_errno(store->connection) : 0;
    const char *text =
        store->connection != NULL ? sqlite3_errmsg(store->connection) : sqlite3_errstr(code);

    switch (code & 0xff) {
    case SQLITE_FULL:
        return err_set(err, ERR_STORE_FULL, ENOSPC, "the store has no space left");
    case SQLITE_CONSTRAINT:
    case SQLITE_ERROR:
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
    case SQLITE_MISMATCH:
        return err_set(err, ERR_INTERNAL, 0, "the store refused: %s", text);
    default:
        return err_set(err, sys == ENOSPC || sys == EDQUOT ? ERR_STORE_FULL : ERR_IO, sys,
                       "the store failed: %s", text);
    }
}

int store_run(struct store *store, const char *sql, struct err *err)
{
    int code = sqlite3_exec(store->connection, sql, NULL, NULL, NULL);

    return code == SQLITE_OK ? 0 : store_fail(store, code, err);
}

int store_begin(struct store *store, struct err *err)
{
    return store_run(store, "BEGIN IMMEDIATE", err);
}

int store_commit(struct store *store, struct err *err)
{
    if (store_run(store, "COMMIT", err) < 0) {
        store_rollback(store);
        return -1;
    }
    return 0;
}

void store_rollback(struct store *store)
{
    /* Some failures end the transaction by themselves (sqlite.org, "ROLLBACK"): no error then. */
    if (sqlite3_get_autocommit(store->connection) == 0) {
        (void)sqlite3_exec(store->connection, "ROLLBACK", NULL, NULL, NULL);
    }
}

static int take_lock(struct store *store, const char *directory, struct err *err)
{
    CLEANUP_FREE char *path = alloc_printf("%s/kernd.lock", directory);

    store->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (store->lock_fd < 0) {
        return err_set(err, errno == ENOSPC ? ERR_STORE_FULL : ERR_IO, errno,
                       "the lock file of the state directory can't be opened: %s",
                       err_errno_text(errno));
    }
    if (flock(store->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        (void)err_set(err, ERR_CONFLICT, errno, "another kernd uses this state directory");
        return err_remedy(err, "stop the other one, or give this one its own --state directory");
    }
    return 0;
}

/* Made beforehand with mode 0600: SQLite would make it 0644, and -wal and -shm follow its mode. */
static int make_file(const char *path, struct err *err)
{
    CLEANUP_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);

    if (fd < 0) {
        return err_set(err, errno == ENOSPC ? ERR_STORE_FULL : ERR_IO, errno,
                       "the database can't be opened: %s", err_errno_text(errno));
    }
    return 0;
}

static int configure(struct store *store, struct err *err)
{
    sqlite3 *connection = store->connection;

    (void)sqlite3_extended_result_codes(connection, 1);
    (void)sqlite3_busy_timeout(connection, BUSY_TIMEOUT_MS);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    return store_run(store,
                     "PRAGMA journal_mode = WAL;"
                     "PRAGMA synchronous = NORMAL;"
                     "PRAGMA foreign_keys = ON;"
                     "PRAGMA cell_size_check = ON;"
                     "PRAGMA temp_store = MEMORY;"
                     "PRAGMA cache_size = -1024;" /* KiB: the server is small when idle */
                     "PRAGMA journal_size_limit = 4194304;",
                     err);
}

static int mark(struct store *store, const char *value, struct err *err)
{
    struct statement s;

    statement_begin_once(&s, store,
                         "INSERT INTO marks (name, value) VALUES ('stopped', ?1) "
                         "ON CONFLICT (name) DO UPDATE SET value = ?1");
    statement_text(&s, 1, value);
    return statement_run(&s, err);
}

static int write_running(struct store *store, struct writer_job *job, struct err *err)
{
    (void)job;
    return mark(store, "running", err);
}

static void keep_job(struct writer_job *job)
{
    (void)job; /* it is the store's own */
}

/*
 * The first thing that is written, and a wait for the disk (the head of a new write-ahead log is
 * synced), which nobody who waits for this server's first answer shall share.
 */
static void mark_soon(struct store *store)
{
    store->started = (struct writer_job){ .write = write_running, .drop = keep_job };
    writer_submit(store->writer, &store->started);
}

static int read_mark(struct store *store, struct err *err)
{
    struct statement s;

    statement_begin_once(&s, store, "SELECT value FROM marks WHERE name = 'stopped'");
    if (statement_row(&s)) {
        CLEANUP_FREE char *value = statement_column_text(&s, 0);

        store->was_unclean = !text_equal(value, "clean");
    }
    return statement_end(&s, err);
}

/*
 * After an unclean stop: is the table that everything else hangs on as it should be? The rest is
 * checked in the background: it grows with history, and start-up should not.
 */
static int check_sessions(struct store *store, struct err *err)
{
    struct statement s;
    char verdict[100] = "";
    int result;

    statement_begin_once(&s, store, "PRAGMA quick_check(sessions)");
    if (statement_row(&s)) {
        statement_column_copy(&s, 0, verdict, sizeof(verdict));
    }
    result = statement_end(&s, err);
    if (result < 0 || text_equal(verdict, "ok")) {
        return result;
    }
    return err_set(err, ERR_NOT_READY, 0, "the database is damaged: %s", verdict);
}

static int prepare_database(struct store *store, struct err *err)
{
    if (configure(store, err) < 0 || schema_migrate(store, schema_newest(), err) < 0 ||
        read_mark(store, err) < 0) {
        return -1;
    }
    return store->was_unclean ? check_sessions(store, err) : 0;
}

/* What a person can do about a database that is no good. */
static void advise(struct err *err)
{
    if (err != NULL && err->code == ERR_NOT_READY && err->remedy[0] == '\0') {
        (void)err_remedy(
            err, "move kernd.db away: sessions are lost, their files go to workspaces/.lost");
    }
}

static int open_database(struct store *store, const char *directory, struct err *err)
{
    CLEANUP_FREE char *path = alloc_printf("%s/kernd.db", directory);
    int code;

    if (make_file(path, err) < 0) {
        return -1;
    }
    code = sqlite3_open_v2(path, &store->connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                           NULL);
    if (code != SQLITE_OK) {
        return store_fail(store, code, err);
    }
    if (prepare_database(store, err) < 0) {
        int last = sqlite3_errcode(store->connection);

        if (last == SQLITE_CORRUPT || last == SQLITE_NOTADB) {
            (void)err_set(err, ERR_NOT_READY, 0, "the database is damaged");
        }
        advise(err);
        return -1;
    }
    if (store->was_unclean) {
        store->checkup = checkup_new(path, err);
        return store->checkup != NULL ? 0 : -1;
    }
    return 0;
}

/* All but the writer, which comes last and goes first. Takes half-opened ones. */
static void dispose(struct store *store)
{
    checkup_free(store->checkup);
    for (size_t i = 0; i < store->kept_count; i++) {
        (void)sqlite3_finalize(store->kept[i].handle);
    }
    /* The last connection also checkpoints and removes the write-ahead log. */
    (void)sqlite3_close(store->connection);
    fd_close(store->lock_fd);
    (void)pthread_mutex_destroy(&store->lock);
    free(store);
}

int store_open(const char *directory, struct store **ret_store, struct err *err)
{
    struct store *store = alloc_zero(1, sizeof(*store));

    (void)pthread_mutex_init(&store->lock, NULL);
    store->lock_fd = -1;
    if (take_lock(store, directory, err) < 0 || open_database(store, directory, err) < 0) {
        dispose(store);
        return -1;
    }
    store->writer = writer_new(store, err);
    if (store->writer == NULL) {
        dispose(store);
        return -1;
    }
    if (!store->was_unclean) { /* or the mark is there */
        mark_soon(store);
    }
    *ret_store = store;
    return 0;
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    writer_free(store->writer);
    (void)sqlite3_exec(store->connection, "PRAGMA optimize", NULL, NULL, NULL);
    /* A damage that was found is looked for again at the next start. */
    if (checkup_verdict(store->checkup, NULL) == 0) {
        (void)mark(store, "clean", NULL);
    }
    dispose(store);
}

bool store_was_unclean(const struct store *store)
{
    return store->was_unclean;
}

int store_flush(struct store *store, struct err *err)
{
    return writer_flush(store->writer, err);
}

int store_check(struct store *store, struct err *err)
{
    if (checkup_verdict(store->checkup, err) < 0) {
        advise(err);
        return -1;
    }
    return writer_check(store->writer, err);
}

void store_stats(struct store *store, struct store_stats *ret_stats)
{
    writer_stats(store->writer, ret_stats);
}
