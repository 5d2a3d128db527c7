/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkup: PRAGMA quick_check on a thread of its own.
 * Owns: that thread and its connection.
 * Threads: any.
 * May include: base.
 */
#include "lib/store/checkup.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"

#define PROGRESS_STEPS 100000 /* of SQLite's machine, some milliseconds */

struct checkup {
    pthread_t thread;
    char *path;
    pthread_mutex_t lock;
    bool stop;
    char damage[100]; /* "": none is known */
};

static int should_stop(void *context)
{
    struct checkup *checkup = context;
    int stop;

    (void)pthread_mutex_lock(&checkup->lock);
    stop = checkup->stop ? 1 : 0;
    (void)pthread_mutex_unlock(&checkup->lock);
    return stop;
}

static void tell(struct checkup *checkup, const char *damage)
{
    (void)pthread_mutex_lock(&checkup->lock);
    (void)snprintf(checkup->damage, sizeof(checkup->damage), "%.99s", damage);
    (void)pthread_mutex_unlock(&checkup->lock);
}

static void check(struct checkup *checkup, sqlite3 *connection)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(connection, "PRAGMA quick_check(1)", -1, &statement, NULL);

    if (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        const char *verdict = (const char *)sqlite3_column_text(statement, 0);

        if (!text_equal(verdict, "ok")) {
            tell(checkup, verdict != NULL ? verdict : "unreadable");
        }
    }
    code = sqlite3_finalize(statement);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
        tell(checkup, sqlite3_errstr(code));
    }
}

static void *run(void *context)
{
    struct checkup *checkup = context;
    sqlite3 *connection = NULL;

    if (sqlite3_open_v2(checkup->path, &connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
                        NULL) == SQLITE_OK) {
        sqlite3_progress_handler(connection, PROGRESS_STEPS, should_stop, checkup);
        check(checkup, connection);
    }
    (void)sqlite3_close(connection);
    return NULL;
}

struct checkup *checkup_new(const char *path, struct err *err)
{
    struct checkup *checkup = alloc_zero(1, sizeof(*checkup));
    int sys;

    checkup->path = alloc_text(path);
    (void)pthread_mutex_init(&checkup->lock, NULL);
    sys = pthread_create(&checkup->thread, NULL, run, checkup);
    if (sys != 0) {
        (void)err_set(err, ERR_IO, sys, "the store's thread can't be made: %s",
                      err_errno_text(sys));
        free(checkup->path);
        free(checkup);
        return NULL;
    }
    (void)pthread_setname_np(checkup->thread, "store-check");
    return checkup;
}

int checkup_verdict(struct checkup *checkup, struct err *err)
{
    int result = 0;

    if (checkup == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&checkup->lock);
    if (checkup->damage[0] != '\0') {
        result = err_set(err, ERR_NOT_READY, 0, "the database is damaged: %s", checkup->damage);
    }
    (void)pthread_mutex_unlock(&checkup->lock);
    return result;
}

void checkup_free(struct checkup *checkup)
{
    if (checkup == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&checkup->lock);
    checkup->stop = true;
    (void)pthread_mutex_unlock(&checkup->lock);
    (void)pthread_join(checkup->thread, NULL);
    (void)pthread_mutex_destroy(&checkup->lock);
    free(checkup->path);
    free(checkup);
}
