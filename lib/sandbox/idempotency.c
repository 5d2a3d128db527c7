/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idempotency: claims of keys in the store.
 * Owns: nothing.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/idempotency.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/store/rows_idempotency.h"

#define KEEP_MS (INT64_C(24) * 3600 * 1000)

void idempotency_found_done(struct idempotency_found *found)
{
    free(found->answer);
    found->answer = NULL;
}

static void fill_row(const struct idempotency *what, struct rows_idempotency *row)
{
    *row = (struct rows_idempotency){ .caller = what->caller, .created_ms = clock_wall_ms() };
    row->expires_ms = row->created_ms + KEEP_MS;
    (void)snprintf(row->key, sizeof(row->key), "%s", what->key);
    (void)snprintf(row->request_hash, sizeof(row->request_hash), "%s", what->hash);
}

static enum idempotency_state state_of(const struct rows_idempotency *row)
{
    if (row->status == ROWS_IDEMPOTENCY_LOST) {
        return IDEMPOTENCY_LOST;
    }
    if (row->status > 0) {
        return IDEMPOTENCY_ANSWERED;
    }
    return row->execution_id[0] == '\0' ? IDEMPOTENCY_IN_FLIGHT : IDEMPOTENCY_EXECUTION;
}

static void fill_found(struct rows_idempotency *there, struct idempotency_found *found)
{
    *found = (struct idempotency_found){ .state = state_of(there),
                                         .status = there->status,
                                         .answer = there->answer };
    there->answer = NULL;
    (void)snprintf(found->execution_id, sizeof(found->execution_id), "%s", there->execution_id);
}

int idempotency_claim(struct sandbox *sandbox, const struct idempotency *what,
                      struct idempotency_found *ret_found, struct err *err)
{
    struct rows_idempotency row;
    struct rows_idempotency there = { .answer = NULL };
    int result;

    fill_row(what, &row);
    result = rows_idempotency_claim(sandbox->store, &row, &there, err);
    if (result < 0) {
        return -1;
    }
    if (result == 1) {
        *ret_found = (struct idempotency_found){ .state = IDEMPOTENCY_FRESH };
        return 0;
    }
    if (!text_equal(there.request_hash, what->hash)) {
        rows_idempotency_done(&there);
        return err_set(err, ERR_IDEMPOTENCY_MISMATCH, 0,
                       "this key was used within the last day with another request");
    }
    fill_found(&there, ret_found);
    rows_idempotency_done(&there);
    return 0;
}

int idempotency_bind(struct sandbox *sandbox, const struct idempotency *what,
                     const char *execution_id, struct err *err)
{
    return rows_idempotency_start(sandbox->store, what->caller, what->key, execution_id, err);
}

int idempotency_answer(struct sandbox *sandbox, const struct idempotency *what, int status,
                       const char *answer, struct err *err)
{
    struct rows_idempotency row;
    int result;

    fill_row(what, &row);
    row.status = status;
    row.answer = answer == NULL ? NULL : alloc_text(answer);
    result = rows_idempotency_finish(sandbox->store, &row, err);
    rows_idempotency_done(&row);
    return result;
}

void idempotency_release(struct sandbox *sandbox, const struct idempotency *what,
                         const char *execution_id)
{
    if (execution_id == NULL) {
        (void)rows_idempotency_release(sandbox->store, what->caller, what->key, NULL);
    } else {
        (void)rows_idempotency_unbind(sandbox->store, what->caller, what->key, execution_id, NULL);
    }
}

void idempotency_lose(struct sandbox *sandbox)
{
    (void)rows_idempotency_lose(sandbox->store, NULL);
}

void idempotency_expire(struct sandbox *sandbox)
{
    (void)rows_idempotency_expire(sandbox->store, clock_wall_ms(), NULL);
}
