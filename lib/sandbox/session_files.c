/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_files: paths, quotas and file operations over a session's workspace.
 * Owns: nothing.
 * Threads: any but the event one.
 * May include: lib/base, lib/work, lib/sandbox.
 */
#include "lib/sandbox/session_files.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/sandbox/janitor.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_entry.h"
#include "lib/work/files.h"
#include "lib/work/path.h"
#include "lib/work/put.h"
#include "lib/work/scan.h"
#include "lib/work/workspace.h"

#define MIB (UINT64_C(1) << 20)

int session_files_list(const struct session_hold *hold, const struct session_files_query *query,
                       struct list *ret_list, struct err *err)
{
    CLEANUP_FREE char *directory = NULL;

    if (path_parse_directory(query->directory, query->directory_size, &directory, err) < 0) {
        return -1;
    }
    return list_take(session_hold_root(hold),
                     &(struct list_options){ .directory = directory,
                                             .glob = query->glob,
                                             .recursive = query->recursive,
                                             .after = query->after,
                                             .limit = query->limit,
                                             .skip = session_hidden },
                     ret_list, err);
}

void session_files_list_done(struct list *list)
{
    list_done(list);
}

int session_files_open(const struct session_hold *hold, const char *path, size_t size, int *ret_fd,
                       struct entry *ret_entry, struct err *err)
{
    CLEANUP_FREE char *parsed = NULL;

    return path_parse(path, size, &parsed, err) < 0
               ? -1
               : files_open(session_hold_root(hold), parsed, ret_fd, ret_entry, err);
}

int session_files_stat(const struct session_hold *hold, const char *path, size_t size,
                       struct entry *ret_entry, struct err *err)
{
    CLEANUP_FREE char *parsed = NULL;

    return path_parse(path, size, &parsed, err) < 0
               ? -1
               : files_stat(session_hold_root(hold), parsed, ret_entry, err);
}

/* What may still be written below the session's quota: at least 1, since 0 would be no bound. */
static int room_left(const struct session_hold *hold, uint64_t *ret_bytes, struct err *err)
{
    uint64_t quota = session_hold_options(hold)->limits.disk_mb * MIB;
    struct scan *scan = NULL;
    uint64_t used;

    *ret_bytes = 0;
    if (quota == 0) {
        return 0;
    }
    if (scan_take(session_hold_root(hold), NULL, &scan, err) < 0) {
        return -1;
    }
    used = scan_disk(scan);
    scan_free(scan);
    if (used >= quota) {
        return err_set(err, ERR_WORKSPACE_FULL, 0, "the session's diskMb is used up");
    }
    *ret_bytes = quota - used;
    return 0;
}

int session_files_put(const struct session_hold *hold, const struct session_files_put *put,
                      bool *ret_created, struct entry *ret_entry, struct err *err)
{
    CLEANUP_FREE char *parsed = NULL;
    struct put_options options = { .durable = true,
                                   .create_only = put->create_only,
                                   .if_match = put->if_match };
    struct put *writer = NULL;
    int result = -1;

    if (session_entry_writable(session_hold_entry(hold), err) < 0 ||
        path_parse(put->path, put->path_size, &parsed, err) < 0 ||
        room_left(hold, &options.max_bytes, err) < 0 ||
        put_begin(session_hold_root(hold), parsed, &options, &writer, err) < 0) {
        return -1;
    }
    if (put_adopt(writer, put->file, put->file_size, err) == 0) {
        result = put_commit(writer, ret_created, ret_entry, err);
    }
    put_free(writer);
    return result;
}

/*
 * A tree goes at once, and its bytes behind the answer: deleting them may take long. False: it has
 * to be deleted in place.
 */
static bool discard(struct sandbox *sandbox, const struct session_hold *hold, const char *path)
{
    CLEANUP_FD int directory = -1;

    if (!session_hold_entry(hold)->owned ||
        files_open_parent(session_hold_root(hold), path, false, &directory, NULL) < 0 ||
        workspace_discard_part(sandbox->workspaces, directory, path_base(path), NULL) < 0) {
        return false;
    }
    janitor_wake(sandbox->janitor);
    return true;
}

int session_files_delete(struct sandbox *sandbox, const struct session_hold *hold,
                         const struct session_files_path *path, bool recursive, struct err *err)
{
    CLEANUP_FREE char *parsed = NULL;

    if (session_entry_writable(session_hold_entry(hold), err) < 0 ||
        path_parse(path->text, path->size, &parsed, err) < 0) {
        return -1;
    }
    if (recursive && discard(sandbox, hold, parsed)) {
        return 0;
    }
    return files_delete(session_hold_root(hold), parsed, recursive, err);
}

int session_files_move(const struct session_hold *hold, const char *from, const char *to,
                       bool overwrite, struct entry *ret_entry, struct err *err)
{
    CLEANUP_FREE char *parsed_from = NULL;
    CLEANUP_FREE char *parsed_to = NULL;

    if (session_entry_writable(session_hold_entry(hold), err) < 0) {
        return -1;
    }
    if (path_parse(from, strlen(from), &parsed_from, err) < 0) {
        (void)err_prefix(err, "from");
        return -1;
    }
    if (path_parse(to, strlen(to), &parsed_to, err) < 0) {
        (void)err_prefix(err, "to");
        return -1;
    }
    if (files_move(session_hold_root(hold), parsed_from, parsed_to, overwrite, err) < 0) {
        return -1;
    }
    return files_stat(session_hold_root(hold), parsed_to, ret_entry, err);
}
