/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environments: looking up and deleting what was built.
 * Owns: the directory of environments.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/environments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/sandbox/environments_internal.h"
#include "lib/sandbox/environments_use.h"
#include "lib/sandbox/janitor.h"
#include "lib/sandbox/options.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/spares.h"
#include "lib/store/rows_session.h"
#include "lib/work/workspace.h"

#define SWEEP_PAGE 1000

static const char *const state_texts[] = {
    [ENVIRONMENTS_BUILDING] = "building",
    [ENVIRONMENTS_READY] = "ready",
    [ENVIRONMENTS_FAILED] = "failed",
};

const char *environments_state_text(enum environments_state state)
{
    return state_texts[state];
}

static enum environments_state state_of(const struct rows_environment *row)
{
    if (text_equal(row->state, state_texts[ENVIRONMENTS_READY])) {
        return ENVIRONMENTS_READY;
    }
    return text_equal(row->state, state_texts[ENVIRONMENTS_BUILDING]) ? ENVIRONMENTS_BUILDING
                                                                      : ENVIRONMENTS_FAILED;
}

const char *environments_parent(const struct environments *environments)
{
    return environments->path;
}

char *environments_path(const struct environments *environments, const char *id)
{
    return alloc_printf("%s/%s", environments->path, id);
}

int environments_directory(const struct environments *environments)
{
    return environments->directory;
}

/* ---- at start ---- */

static bool is_ready(struct environments *environments, const char *id)
{
    struct rows_environment row = { .spec = NULL };
    bool ready;

    if (rows_environment_get(environments->sandbox->store, id, &row, NULL) < 0) {
        return false;
    }
    ready = state_of(&row) == ENVIRONMENTS_READY && text_equal(row.id, id);
    rows_environment_done(&row);
    return ready;
}

/* A log belongs to a row in any state, a directory to a ready one. */
static void sweep_one(void *context, const char *name)
{
    struct environments *environments = context;
    size_t size = strlen(name);
    CLEANUP_FREE char *id = NULL;

    if (text_ends_with(name, ENVIRONMENTS_LOG)) {
        id = alloc_copy(name, size - strlen(ENVIRONMENTS_LOG));
        if (environments_check(environments->sandbox, id, NULL) == 0) {
            return;
        }
    } else if (is_ready(environments, name)) {
        return;
    }
    (void)workspace_discard(environments->directory, name, NULL);
    log_line(LOG_DEBUG, "environment_swept", "name", name, NULL);
}

/* A ready one whose files are gone is of no use; building it again is. */
static void check_files(struct environments *environments, struct rows_environment *row)
{
    struct stat status;

    if (state_of(row) == ENVIRONMENTS_READY &&
        fstatat(environments->directory, row->id, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        (void)snprintf(row->state, sizeof(row->state), "%s", state_texts[ENVIRONMENTS_FAILED]);
        (void)rows_environment_update(environments->sandbox->store, row, NULL);
        log_line(LOG_WARNING, "environment_lost", "id", row->id, NULL);
    }
}

static void check_rows(struct environments *environments)
{
    CLEANUP_FREE char *cursor = NULL;

    do {
        struct rows_environment_page page;

        if (rows_environment_list(environments->sandbox->store, SWEEP_PAGE, cursor, &page, NULL) <
            0) {
            return;
        }
        for (size_t i = 0; i < page.count; i++) {
            check_files(environments, &page.rows[i]);
        }
        free(cursor);
        cursor = CLEANUP_TAKE(page.next_cursor);
        rows_environment_page_done(&page);
    } while (cursor != NULL);
}

struct environments *environments_open(struct sandbox *sandbox, const char *state_dir,
                                       struct err *err)
{
    CLEANUP_FREE char *path = alloc_printf("%s/environments", state_dir);
    struct environments *environments;
    int directory;

    if (workspace_open_parent(path, &directory, err) < 0) {
        return NULL;
    }
    environments = alloc_zero(1, sizeof(*environments));
    environments->sandbox = sandbox;
    environments->path = CLEANUP_TAKE(path);
    environments->directory = directory;
    (void)pthread_mutex_init(&environments->lock, NULL);
    (void)rows_environment_lose(sandbox->store, NULL);
    check_rows(environments);
    (void)workspace_each(directory, sweep_one, environments, NULL);
    return environments;
}

void environments_close(struct environments *environments)
{
    if (environments != NULL) {
        fd_close(environments->directory);
        free(environments->path);
        (void)pthread_mutex_destroy(&environments->lock);
        free(environments);
    }
}

/* ---- views ---- */

void environments_view_done(struct environments_view *view)
{
    environment_spec_done(&view->spec);
}

void environments_page_done(struct environments_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        environments_view_done(&page->items[i]);
    }
    free(page->items);
    free(page->next_cursor);
    *page = (struct environments_page){ .count = 0 };
}

int environments_view_from_row(const struct rows_environment *row,
                               struct environments_view *ret_view, struct err *err)
{
    struct environments_view view = { .state = state_of(row),
                                      .bytes = row->bytes,
                                      .created_ms = row->created_ms };

    if (environment_spec_decode(row->spec, &view.spec, err) < 0) {
        return -1;
    }
    memcpy(view.id, row->id, sizeof(view.id));
    memcpy(view.name, row->name, sizeof(view.name));
    memcpy(view.execution_id, row->execution_id, sizeof(view.execution_id));
    *ret_view = view;
    return 0;
}

int environments_get(struct sandbox *sandbox, const char *id, struct environments_view *ret_view,
                     struct err *err)
{
    struct rows_environment row = { .spec = NULL };
    int result;

    if (rows_environment_get(sandbox->store, id, &row, err) < 0) {
        return -1;
    }
    result = environments_view_from_row(&row, ret_view, err);
    rows_environment_done(&row);
    return result;
}

int environments_check(struct sandbox *sandbox, const char *id, struct err *err)
{
    struct rows_environment row = { .spec = NULL };

    if (rows_environment_get(sandbox->store, id, &row, err) < 0) {
        return -1;
    }
    rows_environment_done(&row);
    return 0;
}

int environments_list(struct sandbox *sandbox, size_t limit, const char *cursor,
                      struct environments_page *ret_page, struct err *err)
{
    struct environments_page page = { .count = 0 };
    struct rows_environment_page rows;

    if (rows_environment_list(sandbox->store, limit, cursor, &rows, err) < 0) {
        return -1;
    }
    page.items = alloc_zero(rows.count + 1, sizeof(*page.items));
    for (size_t i = 0; i < rows.count; i++) {
        if (environments_view_from_row(&rows.rows[i], &page.items[page.count], NULL) == 0) {
            page.count++;
        }
    }
    page.next_cursor = CLEANUP_TAKE(rows.next_cursor);
    rows_environment_page_done(&rows);
    *ret_page = page;
    return 0;
}

int environments_log(struct sandbox *sandbox, const char *id, int *ret_file, uint64_t *ret_size,
                     struct err *err)
{
    CLEANUP_FREE char *name = NULL;
    CLEANUP_FD int file = -1;
    struct rows_environment row = { .spec = NULL };
    enum environments_state state;
    struct stat status;

    if (rows_environment_get(sandbox->store, id, &row, err) < 0) {
        return -1;
    }
    state = state_of(&row);
    name = alloc_printf("%s" ENVIRONMENTS_LOG, row.id);
    rows_environment_done(&row);
    if (state == ENVIRONMENTS_BUILDING) {
        (void)err_set(err, ERR_CONFLICT, 0, "the environment is being built");
        return err_remedy(err, "follow its execution at /v1/executions/{executionId}/events");
    }
    file = openat(sandbox->environments->directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) < 0) {
        return err_set(err, ERR_FILE_NOT_FOUND, errno,
                       "there is no log: the server was ended while the environment was built");
    }
    *ret_size = (uint64_t)status.st_size;
    *ret_file = CLEANUP_TAKE_FD(file);
    return 0;
}

/* ---- delete ---- */

/* Locked, both. */
static int check_unused(struct sandbox *sandbox, const struct rows_environment *row,
                        struct err *err)
{
    CLEANUP_FREE char *part = options_text_of_environment(row->id);
    char session[STORE_ID_SIZE];
    bool found;

    if (state_of(row) == ENVIRONMENTS_BUILDING) {
        (void)err_set(err, ERR_CONFLICT, 0, "the environment is being built");
        return err_remedy(err, "cancel the build first: DELETE /v1/executions/%s",
                          row->execution_id);
    }
    if (environments_use_holds(sandbox->environments, row->id)) {
        return err_set(err, ERR_CONFLICT, 0, "a running call uses the environment");
    }
    if (rows_session_find(sandbox->store, part, session, &found, err) < 0) {
        return -1;
    }
    if (found) {
        (void)err_set(err, ERR_CONFLICT, 0, "a session uses the environment");
        return err_remedy(err, "delete the session %s first", session);
    }
    return 0;
}

/* Locked, both. */
static int remove_locked(struct sandbox *sandbox, const struct rows_environment *row,
                         struct err *err)
{
    struct environments *environments = sandbox->environments;
    CLEANUP_FREE char *log = alloc_printf("%s" ENVIRONMENTS_LOG, row->id);

    if (check_unused(sandbox, row, err) < 0 ||
        rows_environment_delete(sandbox->store, row->id, err) < 0) {
        return -1;
    }
    (void)workspace_discard(environments->directory, row->id, NULL);
    (void)unlinkat(environments->directory, log, 0);
    return 0;
}

int environments_delete(struct sandbox *sandbox, const char *id, struct err *err)
{
    struct environments *environments = sandbox->environments;
    struct rows_environment row = { .spec = NULL };
    bool there;
    int result = 0;

    (void)pthread_mutex_lock(&sandbox->sessions.making);
    (void)pthread_mutex_lock(&environments->lock);
    there = rows_environment_get(sandbox->store, id, &row, NULL) == 0;
    if (there) {
        result = remove_locked(sandbox, &row, err);
    }
    (void)pthread_mutex_unlock(&environments->lock);
    (void)pthread_mutex_unlock(&sandbox->sessions.making);
    if (there && result == 0) {
        spares_drop_environment(sandbox->spares, row.id);
        janitor_wake(sandbox->janitor);
    }
    rows_environment_done(&row);
    return result;
}
