/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records: rows of executions. Code and environment are not stored, only how long the code was and
 * its hash.
 * Owns: nothing.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/records.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "lib/journal/journal.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/store/rows_execution.h"

#define KEEP_MS (INT64_C(7) * 24 * 3600 * 1000)
#define KEEP_ROWS UINT64_C(100000)

static const char *const state_texts[] = {
    [EXECUTION_QUEUED] = "queued",
    [EXECUTION_RUNNING] = "running",
    [EXECUTION_DONE] = "done",
};

const char *records_state_text(enum execution_state state)
{
    return state_texts[state];
}

static void fill_outcome(const struct execution *execution, struct rows_execution *row)
{
    const struct run_result *result = &execution->result;
    const char *fault = run_fault_text(result->fault);

    row->started_ms = result->started_wall_ms;
    row->finished_ms = result->finished_wall_ms;
    row->has_exit_code = result->has_exit_code;
    row->exit_code = result->exit_code;
    if (execution->failure.code != ERR_NONE) {
        fault = run_fault_text(RUN_FAULT_STARTUP_FAILED);
    }
    (void)snprintf(row->fault, sizeof(row->fault), "%s", fault == NULL ? "" : fault);
}

/* What a row tells of an execution that goes on. */
static void describe(const struct execution *execution, enum execution_state state,
                     struct rows_execution *row)
{
    const struct run_request *request = execution->request;

    *row = (struct rows_execution){ .caller = request->caller,
                                    .created_ms = execution->queued_wall_ms,
                                    .code_size = request->code_size };
    (void)snprintf(row->id, sizeof(row->id), "%s", execution->id);
    (void)snprintf(row->session_id, sizeof(row->session_id), "%s", execution->session_id);
    (void)snprintf(row->kernel_id, sizeof(row->kernel_id), "%s", execution->kernel_id);
    (void)snprintf(row->kind, sizeof(row->kind), "%s", run_kind_text(request->kind));
    (void)snprintf(row->state, sizeof(row->state), "%s", state_texts[state]);
    if (request->code != NULL) {
        hash_sha256_hex(request->code, request->code_size, row->code_sha256);
    }
}

void records_describe(struct execution *execution, struct rows_execution *ret_row)
{
    enum execution_state state = execution_state(execution);

    describe(execution, state, ret_row);
    ret_row->started_ms = atomic_load(&execution->sink.started_ms);
    if (state == EXECUTION_DONE) {
        fill_outcome(execution, ret_row);
    }
}

/* To know the same request again when it comes with the same id. */
static void add_fingerprint(const struct execution *execution, char *fingerprint,
                            struct rows_execution *row)
{
    if (execution->request->id != NULL) {
        memcpy(fingerprint, execution->request->fingerprint,
               sizeof(execution->request->fingerprint));
        row->summary = fingerprint;
    }
}

int records_insert(struct sandbox *sandbox, struct execution *execution, struct err *err)
{
    char fingerprint[sizeof(execution->request->fingerprint)];
    struct rows_execution row;

    describe(execution, EXECUTION_QUEUED, &row);
    add_fingerprint(execution, fingerprint, &row);
    return rows_execution_insert(sandbox->store, &row, err);
}

void records_remove(struct sandbox *sandbox, const struct execution *execution)
{
    (void)rows_execution_remove(sandbox->store, execution->id, NULL);
}

void records_put(struct sandbox *sandbox, struct execution *execution, enum execution_state state)
{
    char fingerprint[sizeof(execution->request->fingerprint)];
    struct rows_execution row;

    /* Before the lock: what its request says does not change, and its run thread needs the lock. */
    describe(execution, state, &row);
    add_fingerprint(execution, fingerprint, &row);
    (void)pthread_mutex_lock(&execution->lock);
    if (state == EXECUTION_DONE) {
        fill_outcome(execution, &row);
    }
    if (state == EXECUTION_DONE || execution->state != EXECUTION_DONE) {
        rows_execution_put_soon(sandbox->store, &row);
    }
    (void)pthread_mutex_unlock(&execution->lock);
}

void records_lose(struct sandbox *sandbox)
{
    size_t count;

    (void)rows_execution_lose(sandbox->store, clock_wall_ms(), &count, NULL);
}

void records_expire(struct sandbox *sandbox)
{
    struct journal_usage usage;
    size_t count;

    journal_expire(sandbox->journal, clock_wall_ms(), &usage);
    atomic_store(&sandbox->tally.journal_bytes, usage.bytes);
    do {
        if (rows_execution_expire(sandbox->store, clock_wall_ms() - KEEP_MS, KEEP_ROWS, &count,
                                  NULL) < 0) {
            return;
        }
    } while (count >= 1000);
}
