/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executions: live ones from the list of those under way, past ones from the store.
 * Owns: nothing that lasts.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/executions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/journal/journal.h"
#include "lib/journal/reader.h"
#include "lib/sandbox/events.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/records.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/store/rows_execution.h"

#define DOCUMENT_MAX ((size_t)256 << 20)

void executions_view_done(struct execution_view *view)
{
    buf_done(&view->document);
}

void executions_page_done(struct executions_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        executions_view_done(&page->items[i]);
    }
    free(page->items);
    free(page->next_cursor);
    *page = (struct executions_page){ 0 };
}

static int not_found(const char *id, struct err *err)
{
    return err_set(err, ERR_EXECUTION_NOT_FOUND, 0, "there is no execution %.64s", id);
}

static enum execution_state parse_state(const char *text)
{
    return text_equal(text, "queued")    ? EXECUTION_QUEUED
           : text_equal(text, "running") ? EXECUTION_RUNNING
                                         : EXECUTION_DONE;
}

static void fill_from_row(const struct rows_execution *row, struct execution_view *view)
{
    *view = (struct execution_view){ .state = parse_state(row->state),
                                     .queue_position = -1,
                                     .created_ms = row->created_ms,
                                     .started_ms = row->started_ms,
                                     .finished_ms = row->finished_ms,
                                     .code_size = row->code_size,
                                     .has_exit_code = row->has_exit_code,
                                     .exit_code = row->exit_code,
                                     .document = BUF_INIT(DOCUMENT_MAX) };
    memcpy(view->id, row->id, sizeof(view->id));
    memcpy(view->session_id, row->session_id, sizeof(view->session_id));
    memcpy(view->kernel_id, row->kernel_id, sizeof(view->kernel_id));
    memcpy(view->kind, row->kind, sizeof(view->kind));
    memcpy(view->code_sha256, row->code_sha256, sizeof(view->code_sha256));
    memcpy(view->fault, row->fault, sizeof(view->fault));
    if (row->summary != NULL) {
        (void)snprintf(view->fingerprint, sizeof(view->fingerprint), "%s", row->summary);
    }
}

/* The row says what was last written; what is under way knows better. False: nothing is. */
static bool fill_from_live(struct sandbox *sandbox, struct execution_view *view)
{
    struct execution *execution = live_find(&sandbox->live, view->id);
    struct rows_execution row;

    if (execution == NULL) {
        return false;
    }
    records_describe(execution, &row);
    fill_from_row(&row, view);
    view->queue_position = view->state == EXECUTION_QUEUED ? execution_position(execution) : -1;
    execution_unref(execution);
    return true;
}

/* One that is just beginning has no row yet. */
static int find_row(struct sandbox *sandbox, const char *id, struct rows_execution *ret_row)
{
    struct execution *execution = live_find(&sandbox->live, id);
    int result = rows_execution_get(sandbox->store, id, ret_row, NULL);

    if (result < 0 && execution != NULL) {
        records_describe(execution, ret_row);
        result = 0;
    }
    execution_unref(execution);
    return result;
}

static int get_row(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                   struct rows_execution *ret_row, struct err *err)
{
    if (find_row(sandbox, id, ret_row) < 0) {
        return not_found(id, err);
    }
    if (!actor->all && ret_row->caller != actor->caller) {
        rows_execution_done(ret_row);
        return not_found(id, err);
    }
    return 0;
}

int executions_check(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                     struct err *err)
{
    struct execution *execution = live_find(&sandbox->live, id);
    struct rows_execution row = { .summary = NULL };
    bool mine;

    if (execution != NULL) {
        mine = actor->all || execution->request->caller == actor->caller;
        execution_unref(execution);
        return mine ? 0 : not_found(id, err);
    }
    if (get_row(sandbox, actor, id, &row, err) < 0) {
        return -1;
    }
    rows_execution_done(&row);
    return 0;
}

/* The document is at the end of the log; one that is not there any more is left empty. */
static void read_document(struct sandbox *sandbox, struct execution_view *view)
{
    struct tape *tape = journal_find(sandbox->journal, view->id, NULL);
    struct tape_event event;
    struct reader *reader;

    if (tape == NULL) {
        return;
    }
    reader = reader_new(tape, tape_count(tape) == 0 ? 0 : tape_count(tape) - 1, NULL, NULL);
    if (reader_next(reader, &event) == READER_EVENT &&
        (event.kind == EVENT_EXIT || event.kind == EVENT_ERROR)) {
        const struct event end = { .data = event.data, .size = event.size };
        const char *text;
        const char *document;
        size_t text_size;
        size_t document_size;

        events_split_end(&end, &text, &text_size, &document, &document_size);
        (void)buf_append(&view->document, document, document_size);
    }
    reader_free(reader);
    tape_unref(tape);
}

int executions_get(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                   bool document, struct execution_view *ret_view, struct err *err)
{
    struct rows_execution row = { .summary = NULL };
    struct execution_view view;

    if (get_row(sandbox, actor, id, &row, err) < 0) {
        return -1;
    }
    fill_from_row(&row, &view);
    rows_execution_done(&row);
    if (view.state != EXECUTION_DONE && !fill_from_live(sandbox, &view) &&
        get_row(sandbox, actor, id, &row, NULL) == 0) {
        fill_from_row(&row, &view); /* it has ended between the two looks */
        rows_execution_done(&row);
    }
    if (view.state == EXECUTION_DONE && document) {
        read_document(sandbox, &view);
    }
    *ret_view = view;
    return 0;
}

int executions_list(struct sandbox *sandbox, const struct session_actor *actor,
                    const struct executions_filter *filter, struct executions_page *ret_page,
                    struct err *err)
{
    const struct rows_execution_filter rows_filter = {
        .limit = filter->limit,
        .cursor = filter->cursor,
        .session_id = filter->session_id,
        /* Rows are written at the beginning and at the end: one that runs is still "queued" there.
         */
        .state = !filter->by_state
                     ? NULL
                     : records_state_text(filter->state == EXECUTION_DONE ? EXECUTION_DONE
                                                                          : EXECUTION_QUEUED),
        .by_caller = !actor->all,
        .caller = actor->caller,
    };
    struct rows_execution_page rows;
    struct executions_page page = { 0 };

    if (rows_execution_list(sandbox->store, &rows_filter, &rows, err) < 0) {
        return -1;
    }
    page.items = alloc_zero(rows.count + 1, sizeof(*page.items));
    for (size_t i = 0; i < rows.count; i++) {
        struct execution_view *view = &page.items[page.count];

        fill_from_row(&rows.rows[i], view);
        if (view->state != EXECUTION_DONE) {
            (void)fill_from_live(sandbox, view);
        }
        if (!filter->by_state || view->state == filter->state) {
            page.count++;
        }
    }
    page.next_cursor = CLEANUP_TAKE(rows.next_cursor);
    rows_execution_page_done(&rows);
    *ret_page = page;
    return 0;
}

struct execution *executions_find_live(struct sandbox *sandbox, const struct session_actor *actor,
                                       const char *id, struct err *err)
{
    struct execution *execution = live_find(&sandbox->live, id);

    if (execution == NULL && executions_check(sandbox, actor, id, err) == 0) {
        /* One whose id was chosen has its record first, and gets into the list under this lock. */
        (void)pthread_mutex_lock(&sandbox->naming);
        execution = live_find(&sandbox->live, id);
        (void)pthread_mutex_unlock(&sandbox->naming);
        if (execution == NULL) {
            (void)err_set(err, ERR_EXECUTION_DONE, 0, "the execution has ended");
        }
    } else if (execution != NULL && !actor->all && execution->request->caller != actor->caller) {
        execution_unref(execution);
        execution = NULL;
        (void)executions_check(sandbox, actor, id, err);
    }
    return execution;
}

int executions_cancel(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                      struct err *err)
{
    struct err failure = ERR_INIT;
    struct execution *execution = executions_find_live(sandbox, actor, id, &failure);

    if (execution != NULL) {
        execution_cancel(execution, CANCEL_REQUESTED);
        execution_unref(execution);
        return 0;
    }
    if (failure.code == ERR_EXECUTION_DONE) {
        return 0;
    }
    if (err != NULL) {
        *err = failure;
    }
    return -1;
}
