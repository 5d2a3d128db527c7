/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/fd.h"
#include "lib/store/cursor.h"
#include "lib/store/rows_session.h"
#include "lib/store/schema.h"
#include "lib/store/statement.h"
#include "lib/store/store.h"
#include "lib/store/store_internal.h"
#include "lib/store/writer.h"
#include "tests/unit/scratch.h"

static struct store *open_store(void)
{
    struct store *store = NULL;
    struct err err = ERR_INIT;

    if (store_open(scratch_path, &store, &err) < 0) {
        fail_msg("store_open: %s", err.msg);
    }
    assert_int_equal(store_flush(store, NULL), 0); /* what the start itself writes */
    return store;
}

static char *ask(struct store *store, const char *sql)
{
    struct statement s;
    char *answer = NULL;

    store_enter(store);
    statement_begin_once(&s, store, sql);
    if (statement_row(&s)) {
        answer = statement_column_text(&s, 0);
    }
    assert_int_equal(statement_end(&s, NULL), 0);
    store_leave(store);
    return answer;
}

static void assert_answer(struct store *store, const char *sql, const char *expected)
{
    char *answer = ask(store, sql);

    assert_non_null(answer);
    assert_string_equal(answer, expected);
    free(answer);
}

/* What keeps a database sound that somebody else wrote to. */
static void assert_strict(struct store *store)
{
    assert_answer(store, "PRAGMA cell_size_check", "1");
    assert_answer(store, "PRAGMA busy_timeout", "2000");
    assert_answer(store, "PRAGMA integrity_check", "ok");
    assert_answer(store,
                  "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND NOT strict"
                  " AND name NOT LIKE 'sqlite!_%' ESCAPE '!'",
                  "0");
    /* A word in double quotes is a name, and nobody writes the schema but by its own statements. */
    store_enter(store);
    assert_int_equal(store_run(store, "SELECT \"no such column\"", NULL), -1);
    assert_int_equal(store_run(store,
                               "PRAGMA writable_schema = ON;"
                               "UPDATE sqlite_schema SET sql = ''",
                               NULL),
                     -1);
    store_leave(store);
}

static void settings(void **state)
{
    static const char *const names[] = { "kernd.db", "kernd.db-wal", "kernd.db-shm", "kernd.lock" };
    struct store *store = open_store();
    struct stat status;

    (void)state;
    assert_answer(store, "PRAGMA journal_mode", "wal");
    assert_answer(store, "PRAGMA synchronous", "1");
    assert_answer(store, "PRAGMA foreign_keys", "1");
    assert_answer(store, "PRAGMA trusted_schema", "0");
    assert_strict(store);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(fstatat(scratch_fd, names[i], &status, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(status.st_mode & 07777, 0600);
    }
    assert_int_equal(store_check(store, NULL), 0);
    store_close(store);
    store_close(NULL);
    assert_false(scratch_has(scratch_fd, "kernd.db-wal"));
}

static void make_session(struct store *store, const char *id)
{
    struct rows_session row = { .state = "ready", .owned = true };
    char options[] = "{}";

    row.options = options;
    row.workspace = options;
    (void)snprintf(row.id, sizeof(row.id), "%s", id);
    assert_int_equal(rows_session_insert(store, &row, NULL), 0);
}

struct outsider {
    char path[96];
    sqlite3 *connection;
    bool held;
};

/* What somebody with the sqlite3 shell may do: keep others from writing for a while. */
static void *let_go_soon(void *context)
{
    struct outsider *outsider = context;
    struct timespec pause = { .tv_nsec = 200 * 1000 * 1000 };

    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    outsider->held = sqlite3_exec(outsider->connection, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
    return NULL;
}

static void an_outsider_is_waited_for(void **state)
{
    struct store *store = open_store();
    struct outsider outsider = { .connection = NULL };
    pthread_t thread;

    (void)state;
    (void)snprintf(outsider.path, sizeof(outsider.path), "%s/kernd.db", scratch_path);
    assert_int_equal(
        sqlite3_open_v2(outsider.path, &outsider.connection, SQLITE_OPEN_READWRITE, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_exec(outsider.connection, "BEGIN IMMEDIATE", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(pthread_create(&thread, NULL, let_go_soon, &outsider), 0);
    make_session(store, "ses_waits");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(outsider.held);
    assert_int_equal(sqlite3_close(outsider.connection), SQLITE_OK);
    assert_answer(store, "SELECT count(*) FROM sessions", "1");
    store_close(store);
}

static void one_server_a_directory(void **state)
{
    struct store *store = open_store();
    struct store *other = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(store_open(scratch_path, &other, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_null(other);
    store_close(store);
    store_close(open_store());
}

static void copy_file(const char *from, const char *to)
{
    char path[96];
    size_t size = 0;
    char *data;

    (void)snprintf(path, sizeof(path), "%s/%s", scratch_path, from);
    data = fd_read_file(path, (size_t)1 << 24, &size);
    assert_non_null(data);
    (void)snprintf(path, sizeof(path), "%s/%s", scratch_path, to);
    assert_int_equal(fd_write_file(path, data, size, 0600), 0);
    free(data);
}

/* A killed server: its files as they are while it runs, opened by another one. */
static void an_unclean_stop(void **state)
{
    struct rows_session row;
    struct store *store = open_store();
    struct store *after = NULL;
    char crashed[80];

    (void)state;
    assert_false(store_was_unclean(store));
    make_session(store, "ses_1");
    assert_int_equal(mkdirat(scratch_fd, "crashed", 0700), 0);
    copy_file("kernd.db", "crashed/kernd.db");
    copy_file("kernd.db-wal", "crashed/kernd.db-wal");
    store_close(store);
    (void)snprintf(crashed, sizeof(crashed), "%s/crashed", scratch_path);
    assert_int_equal(store_open(crashed, &after, NULL), 0);
    assert_true(store_was_unclean(after));
    assert_int_equal(rows_session_get(after, "ses_1", &row, NULL), 0);
    rows_session_done(&row);
    store_close(after);
    assert_int_equal(store_open(crashed, &after, NULL), 0);
    assert_false(store_was_unclean(after));
    store_close(after);
}

static void a_damaged_database(void **state)
{
    struct store *store = NULL;
    struct err err = ERR_INIT;
    char text[5000];

    (void)state;
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    scratch_file(scratch_fd, "kernd.db", text);
    assert_int_equal(store_open(scratch_path, &store, &err), -1);
    assert_int_equal(err.code, ERR_NOT_READY);
    assert_true(err.remedy[0] != '\0');
    assert_null(store);
}

/* Pages of another table gone bad: found in the background. */
static void damage_after_an_unclean_stop(void **state)
{
    struct store *store = open_store();
    struct err err = ERR_INIT;
    char garbage[4096];
    char *page;
    int fd;

    (void)state;
    page = ask(store, "SELECT rootpage FROM sqlite_schema WHERE name = 'executions'");
    store_enter(store);
    assert_int_equal(store_run(store, "UPDATE marks SET value = 'running'", NULL), 0);
    assert_int_equal(store_run(store, "PRAGMA wal_checkpoint(TRUNCATE)", NULL), 0);
    store_leave(store);
    assert_int_equal(mkdirat(scratch_fd, "crashed", 0700), 0);
    copy_file("kernd.db", "crashed/kernd.db");
    store_close(store);
    memset(garbage, 0x5a, sizeof(garbage));
    fd = openat(scratch_fd, "crashed/kernd.db", O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, garbage, sizeof(garbage), (atoll(page) - 1) * 4096), 4096);
    fd_close(fd);
    free(page);
    (void)strncat(scratch_path, "/crashed", 10);
    store = open_store();
    while (store_check(store, &err) == 0) {
    }
    assert_int_equal(err.code, ERR_NOT_READY);
    assert_true(err.remedy[0] != '\0');
    store_close(store);
    store = open_store();
    assert_true(store_was_unclean(store));
    store_close(store);
}

static void a_newer_database(void **state)
{
    struct store *store = open_store();
    struct err err = ERR_INIT;

    (void)state;
    store_enter(store);
    assert_int_equal(store_run(store, "PRAGMA user_version = 9999", NULL), 0);
    store_leave(store);
    store_close(store);
    store = NULL;
    assert_int_equal(store_open(scratch_path, &store, &err), -1);
    assert_int_equal(err.code, ERR_NOT_READY);
    assert_non_null(strstr(err.msg, "9999"));
}

/* Every older version, brought up, has the schema of a fresh database. */
static void migrations(void **state)
{
    static const char all[] = "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema"
                              " WHERE sql IS NOT NULL ORDER BY name)";
    struct store *store = open_store();
    char *fresh = ask(store, all);

    (void)state;
    store_close(store);
    for (int version = 0; version < schema_newest(); version++) {
        struct store old = { .lock = PTHREAD_MUTEX_INITIALIZER };

        assert_int_equal(unlinkat(scratch_fd, "kernd.db", 0), 0);
        scratch_file(scratch_fd, "kernd.db", "");
        assert_int_equal(fchmodat(scratch_fd, "kernd.db", 0600, 0), 0);
        {
            char path[80];

            (void)snprintf(path, sizeof(path), "%s/kernd.db", scratch_path);
            assert_int_equal(sqlite3_open_v2(path, &old.connection, SQLITE_OPEN_READWRITE, NULL),
                             SQLITE_OK);
        }
        assert_int_equal(schema_migrate(&old, version, NULL), 0);
        assert_int_equal(sqlite3_close(old.connection), SQLITE_OK);
        store = open_store();
        assert_answer(store, all, fresh);
        store_close(store);
    }
    free(fresh);
}

struct probe {
    struct writer_job job;
    int *runs;
    int fail; /* how many times it fails first */
};

static int probe_write(struct store *store, struct writer_job *job, struct err *err)
{
    struct probe *probe = (struct probe *)(void *)job;

    (void)store;
    (*probe->runs)++;
    return probe->fail-- > 0 ? err_set(err, ERR_STORE_FULL, 0, "full") : 0;
}

static void probe_drop(struct writer_job *job)
{
    free(job);
}

static void submit_row(struct store *store, const char *row, int *runs, int fail)
{
    struct probe *probe = calloc(1, sizeof(*probe));

    probe->job = (struct writer_job){ .write = probe_write, .drop = probe_drop, .row = row };
    probe->runs = runs;
    probe->fail = fail;
    writer_submit(store->writer, &probe->job);
}

static void submit_probe(struct store *store, int *runs, int fail)
{
    submit_row(store, NULL, runs, fail);
}

/* Of those of one batch: the writer waits for the store's lock with the first of all. */
static void the_last_write_of_a_row_is_done(void **state)
{
    struct store *store = open_store();
    struct store_stats stats;
    int first = 0;
    int early[2] = { 0 };
    int late[2] = { 0 };
    int others = 0;

    (void)state;
    assert_int_equal(store_flush(store, NULL), 0);
    store_enter(store);
    submit_row(store, "a", &first, 0);
    do {
        store_stats(store, &stats);
    } while (stats.queued > 0);
    submit_row(store, "a", &early[0], 0);
    submit_row(store, "b", &early[1], 0);
    submit_probe(store, &others, 0);
    submit_row(store, "a", &early[0], 0);
    submit_row(store, "c", &others, 0);
    submit_row(store, "b", &late[1], 1);
    submit_row(store, "a", &late[0], 0);
    store_leave(store);
    while (store_flush(store, NULL) < 0) {
    }
    assert_int_equal(first, 1);
    assert_int_equal(early[0] + early[1], 0);
    assert_int_equal(late[0], 1);
    assert_int_equal(late[1], 2); /* it failed once, and what is before it was done again */
    assert_int_equal(others, 4);
    submit_row(store, "a", &first, 0);
    store_close(store);
    assert_int_equal(first, 2);
}

static void queued_writes(void **state)
{
    struct store *store = open_store();
    struct store_stats stats;
    int runs = 0;

    (void)state;
    assert_int_equal(store_flush(store, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        submit_probe(store, &runs, 0);
    }
    assert_int_equal(store_flush(store, NULL), 0);
    assert_int_equal(runs, 1000);
    submit_probe(store, &runs, 0);
    store_stats(store, &stats);
    assert_int_equal(stats.dropped, 0);
    store_close(store);
    assert_int_equal(runs, 1001);
}

static void queued_writes_that_fail(void **state)
{
    struct store *store = open_store();
    struct err err = ERR_INIT;
    struct store_stats stats;
    int failing = 0;
    int working = 0;

    (void)state;
    submit_probe(store, &failing, 3);
    submit_probe(store, &working, 0);
    assert_int_equal(store_flush(store, &err), -1);
    assert_int_equal(err.code, ERR_STORE_FULL);
    assert_int_equal(store_check(store, &err), -1);
    store_stats(store, &stats);
    assert_int_equal(stats.queued, 2);
    while (store_flush(store, NULL) < 0) {
    }
    assert_int_equal(failing, 4);
    assert_int_equal(working, 1);
    assert_int_equal(store_check(store, NULL), 0);
    submit_probe(store, &failing, 1000000); /* closing gives up */
    store_close(store);
}

/* The database may not grow: what a full disk does, by SQLite's own page limit. */
static void no_space_left(void **state)
{
    struct store *store = open_store();
    struct err err = ERR_INIT;
    char *large = calloc(1, 200001);
    struct rows_session row = { .id = "large", .state = "ready" };

    (void)state;
    memset(large, 'x', 200000);
    row.options = large;
    row.workspace = large;
    store_enter(store);
    assert_int_equal(store_run(store, "PRAGMA max_page_count = 1", NULL), 0);
    store_leave(store);
    assert_int_equal(rows_session_insert(store, &row, &err), -1);
    assert_int_equal(err.code, ERR_STORE_FULL);
    assert_int_equal(rows_session_get(store, "large", &row, &err), -1);
    assert_int_equal(err.code, ERR_SESSION_NOT_FOUND);
    store_enter(store);
    assert_int_equal(store_run(store, "PRAGMA max_page_count = 1000000", NULL), 0);
    store_leave(store);
    make_session(store, "small");
    assert_strict(store);
    store_close(store);
    free(large);
}

static void cursors(void **state)
{
    static const char *const bad[] = {
        "", ".", "1", "1.", ".a", "x.a", "-1.a", "1.a b", "9223372036854775808.a", "1.\xff"
    };
    struct err err = ERR_INIT;
    struct cursor cursor;
    char *text = cursor_format(1234, "exe_a.b");

    (void)state;
    assert_int_equal(cursor_parse(text, &cursor, NULL), 0);
    assert_int_equal(cursor.created_ms, 1234);
    assert_string_equal(cursor.id, "exe_a.b");
    free(text);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(cursor_parse(bad[i], &cursor, &err), -1);
        assert_int_equal(err.code, ERR_BAD_CURSOR);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(settings, scratch_fresh),
        cmocka_unit_test_setup(an_outsider_is_waited_for, scratch_fresh),
        cmocka_unit_test_setup(one_server_a_directory, scratch_fresh),
        cmocka_unit_test_setup(an_unclean_stop, scratch_fresh),
        cmocka_unit_test_setup(a_damaged_database, scratch_fresh),
        cmocka_unit_test_setup(damage_after_an_unclean_stop, scratch_fresh),
        cmocka_unit_test_setup(a_newer_database, scratch_fresh),
        cmocka_unit_test_setup(migrations, scratch_fresh),
        cmocka_unit_test_setup(queued_writes, scratch_fresh),
        cmocka_unit_test_setup(the_last_write_of_a_row_is_done, scratch_fresh),
        cmocka_unit_test_setup(queued_writes_that_fail, scratch_fresh),
        cmocka_unit_test_setup(no_space_left, scratch_fresh),
        cmocka_unit_test(cursors),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
