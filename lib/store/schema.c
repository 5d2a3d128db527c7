/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema: tables as SQL text, applied in order.
 * Owns: user_version of the database.
 * Threads: whoever has entered the store; only store_open does this.
 * May include: base.
 */
#include "lib/store/schema.h"

#include <stdio.h>

#include "lib/store/statement.h"
#include "lib/store/store_internal.h"

/*
 * Times are milliseconds since 1970, UTC; 0 where they did not come yet. `options`, `summary`,
 * `spec` and the like are texts of the layers above, opaque here. `caller` is a 64-bit key.
 */
static const char sessions[] =
    "CREATE TABLE sessions ("
    "  id TEXT PRIMARY KEY,"
    "  state TEXT NOT NULL,"
    "  options TEXT NOT NULL,"
    "  workspace TEXT NOT NULL,"
    "  owned INTEGER NOT NULL CHECK (owned IN (0, 1)),"
    "  caller INTEGER NOT NULL,"
    "  created_ms INTEGER NOT NULL,"
    "  updated_ms INTEGER NOT NULL,"
    "  used_ms INTEGER NOT NULL,"
    "  expires_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX sessions_by_time ON sessions (created_ms, id);"
    "CREATE INDEX sessions_by_caller ON sessions (caller, created_ms, id);"
    "CREATE INDEX sessions_by_end ON sessions (expires_ms) WHERE expires_ms > 0;"
    "CREATE TABLE labels ("
    "  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,"
    "  label TEXT NOT NULL," /* key=value */
    "  PRIMARY KEY (session_id, label)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX labels_by_label ON labels (label, session_id);"
    "CREATE TABLE kernels ("
    "  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,"
    "  id TEXT NOT NULL,"
    "  language TEXT NOT NULL,"
    "  state TEXT NOT NULL,"
    "  reason TEXT,"
    "  options TEXT NOT NULL,"
    "  cells INTEGER NOT NULL,"
    "  created_ms INTEGER NOT NULL,"
    "  ended_ms INTEGER NOT NULL,"
    "  PRIMARY KEY (session_id, id)"
    ") STRICT, WITHOUT ROWID;";

static const char executions[] =
    "CREATE TABLE executions ("
    "  id TEXT PRIMARY KEY,"
    "  session_id TEXT,"
    "  kernel_id TEXT,"
    "  kind TEXT NOT NULL,"
    "  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done')),"
    "  caller INTEGER NOT NULL,"
    "  created_ms INTEGER NOT NULL,"
    "  started_ms INTEGER NOT NULL,"
    "  finished_ms INTEGER NOT NULL,"
    "  code_size INTEGER NOT NULL,"
    "  code_sha256 TEXT,"
    "  exit_code INTEGER," /* NULL: none is known */
    "  fault TEXT,"
    "  summary TEXT"
    ") STRICT;"
    "CREATE INDEX executions_by_time ON executions (created_ms, id);"
    "CREATE INDEX executions_by_session ON executions (session_id, created_ms, id);"
    "CREATE INDEX executions_by_caller ON executions (caller, created_ms, id);"
    "CREATE INDEX executions_alive ON executions (state, created_ms, id) WHERE state <> 'done';";

static const char others[] =
    "CREATE TABLE idempotency_keys ("
    "  caller INTEGER NOT NULL,"
    "  key TEXT NOT NULL,"
    "  request_hash TEXT NOT NULL,"
    "  execution_id TEXT,"
    "  status INTEGER NOT NULL," /* 0: in flight */
    "  answer TEXT,"
    "  created_ms INTEGER NOT NULL,"
    "  expires_ms INTEGER NOT NULL,"
    "  PRIMARY KEY (caller, key)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX idempotency_keys_by_end ON idempotency_keys (expires_ms);"
    "CREATE TABLE snapshots ("
    "  id TEXT PRIMARY KEY,"
    "  name TEXT UNIQUE,"
    "  session_id TEXT,"
    "  caller INTEGER NOT NULL,"
    "  digest TEXT NOT NULL,"
    "  bytes INTEGER NOT NULL,"
    "  entries INTEGER NOT NULL,"
    "  labels TEXT,"
    "  left_out TEXT,"
    "  created_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX snapshots_by_time ON snapshots (created_ms, id);"
    "CREATE INDEX snapshots_by_digest ON snapshots (digest);"
    "CREATE TABLE environments ("
    "  id TEXT PRIMARY KEY,"
    "  name TEXT UNIQUE,"
    "  state TEXT NOT NULL,"
    "  spec TEXT NOT NULL,"
    "  execution_id TEXT,"
    "  caller INTEGER NOT NULL,"
    "  bytes INTEGER NOT NULL,"
    "  created_ms INTEGER NOT NULL,"
    "  used_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX environments_by_time ON environments (created_ms, id);"
    "CREATE TABLE marks (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;";

static const char tokens[] =
    "CREATE TABLE tokens ("
    "  id TEXT PRIMARY KEY,"
    "  name TEXT NOT NULL,"
    "  scope TEXT NOT NULL CHECK (scope IN ('run', 'full')),"
    "  sha256 TEXT NOT NULL UNIQUE," /* of the token's text, which is kept nowhere */
    "  caller INTEGER NOT NULL UNIQUE,"
    "  created_ms INTEGER NOT NULL,"
    "  expires_ms INTEGER NOT NULL"
    ") STRICT;";

/* Those that a stop left half made (later: or half deleted) are looked for at each start. */
static const char half_made[] =
    "CREATE INDEX sessions_half_made ON sessions (id) WHERE state = 'creating';";

static const char half_deleted[] = "DROP INDEX sessions_half_made;"
                                   "CREATE INDEX sessions_half_done ON sessions (id)"
                                   "  WHERE state IN ('creating', 'deleting');";

/* One version a row: up to three texts each. */
static const char *const steps[][3] = {
    { sessions, executions, others },
    { tokens },
    { half_made },
    { half_deleted },
};

int schema_newest(void)
{
    return (int)(sizeof(steps) / sizeof(steps[0]));
}

static int read_version(struct store *store, int *ret_version, struct err *err)
{
    struct statement s;

    statement_begin_once(&s, store, "PRAGMA user_version");
    if (statement_row(&s)) {
        *ret_version = (int)statement_column_int(&s, 0);
    }
    return statement_end(&s, err);
}

static int apply(struct store *store, int version, struct err *err)
{
    char set_version[64];

    if (store_begin(store, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof(steps[0]) / sizeof(steps[0][0]); i++) {
        const char *sql = steps[version][i];

        if (sql != NULL && store_run(store, sql, err) < 0) {
            store_rollback(store);
            return -1;
        }
    }
    (void)snprintf(set_version, sizeof(set_version), "PRAGMA user_version = %d", version + 1);
    if (store_run(store, set_version, err) < 0) {
        store_rollback(store);
        return -1;
    }
    return store_commit(store, err);
}

int schema_migrate(struct store *store, int to, struct err *err)
{
    int version = 0;

    if (read_version(store, &version, err) < 0) {
        return -1;
    }
    if (version > schema_newest()) {
        (void)err_set(err, ERR_NOT_READY, 0,
                      "the database has version %d, this kernd knows up to %d", version,
                      schema_newest());
        return err_remedy(err, "start the newer kernd that made it, or another state directory");
    }
    for (; version < to && version < schema_newest(); version++) {
        if (apply(store, version, err) < 0) {
            return -1;
        }
    }
    return 0;
}
