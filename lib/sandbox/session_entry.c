/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_entry: from a session's row to its entry in memory.
 * Owns: nothing that lasts.
 * Threads: any but the event one.
 * May include: lib/base, lib/store, lib/work, lib/sandbox.
 */
#include "lib/sandbox/session_entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/fd.h"
#include "lib/sandbox/session_sweep.h"
#include "lib/store/rows_session.h"
#include "lib/work/hostdir.h"
#include "lib/work/workspace.h"

void session_entry_free(struct session_entry *entry)
{
    if (entry == NULL) {
        return;
    }
    options_done(&entry->options);
    fd_close(entry->root);
    free(entry->workspace);
    free(entry->path);
    free(entry);
}

static int open_owned(struct session_table *table, struct session_entry *entry, struct err *err)
{
    struct err first = ERR_INIT;

    if (workspace_open(table->workspaces, entry->workspace, &entry->root, &first) == 0) {
        return 0;
    }
    if (first.code == ERR_FILE_NOT_FOUND) {
        (void)session_sweep_repair(table, entry->workspace, NULL);
    }
    return workspace_open(table->workspaces, entry->workspace, &entry->root, err);
}

static int open_workspace(struct session_table *table, struct session_entry *entry, struct err *err)
{
    if (entry->owned) {
        entry->path = alloc_printf("%s/%s", table->workspaces_path, entry->workspace);
        return open_owned(table, entry, err);
    }
    entry->path = alloc_text(entry->workspace);
    entry->root = hostdir_open(entry->path);
    if (entry->root < 0) {
        return err_set(err, ERR_CONFLICT, errno,
                       "the session's workspace directory is not there any more");
    }
    return 0;
}

static struct session_entry *from_row(struct rows_session *row, struct err *err)
{
    struct session_entry *entry = alloc_zero(1, sizeof(*entry));

    entry->root = -1;
    if (options_decode(row->options, strlen(row->options), &entry->options, err) < 0 ||
        session_state_parse(row->state, &entry->state) < 0) {
        free(entry);
        (void)err_set(err, ERR_INTERNAL, 0, "a stored session can't be read");
        return NULL;
    }
    memcpy(entry->id, row->id, sizeof(entry->id));
    entry->caller = row->caller;
    entry->owned = row->owned;
    entry->readonly = entry->options.workspace_readonly;
    entry->workspace = alloc_text(row->workspace);
    entry->created_ms = row->created_ms;
    entry->updated_ms = row->updated_ms;
    entry->used_ms = row->used_ms;
    return entry;
}

/* Whoever may not see it is not told that it expired either. */
static int check(const struct session_entry *entry, const struct session_actor *actor,
                 struct err *err)
{
    if (!actor->all && entry->caller != actor->caller) {
        return err_set(err, ERR_SESSION_NOT_FOUND, 0, "there is no session %s", entry->id);
    }
    if (entry->state == SESSION_EXPIRED) {
        return err_set(err, ERR_SESSION_EXPIRED, 0, "the session ran out of time and was removed");
    }
    return 0;
}

int session_entry_writable(const struct session_entry *entry, struct err *err)
{
    if (!entry->readonly) {
        return 0;
    }
    (void)err_set(err, ERR_FORBIDDEN, 0, "the workspace of this session is read-only");
    return err_remedy(err, "write to /tmp in a box, or work in another session");
}

struct session_entry *session_entry_load(struct session_table *table,
                                         const struct session_actor *actor, const char *id,
                                         struct err *err)
{
    struct rows_session row = { .options = NULL };
    struct session_entry *entry;

    if (rows_session_get(table->store, id, &row, err) < 0) {
        return NULL;
    }
    entry = from_row(&row, err);
    rows_session_done(&row);
    if (entry == NULL) {
        return NULL;
    }
    if (check(entry, actor, err) < 0 || open_workspace(table, entry, err) < 0) {
        session_entry_free(entry);
        return NULL;
    }
    return entry;
}
