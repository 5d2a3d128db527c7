/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place: files into and out of the workspace of one call.
 * Owns: the call's directory, when it is a fresh one.
 * Threads: the run thread of the call.
 * May include: lib/base, lib/box/spawn.h, lib/work.
 */
#include "lib/sandbox/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/box/spawn.h"
#include "lib/sandbox/mounts.h"
#include "lib/sandbox/point.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session.h"
#include "lib/sandbox/session_entry.h"
#include "lib/work/files.h"
#include "lib/work/hostdir.h"
#include "lib/work/path.h"
#include "lib/work/put.h"
#include "lib/work/scan.h"

#define MIB (UINT64_C(1) << 20)

static int normalise(char **path, struct err *err)
{
    char *parsed;

    if (path_parse(*path, strlen(*path), &parsed, err) < 0) {
        return -1;
    }
    free(*path);
    *path = parsed;
    return 0;
}

int place_check(struct run_request *request, struct err *err)
{
    for (size_t i = 0; i < request->file_count; i++) {
        if (normalise(&request->files[i].path, err) < 0) {
            point_at(err, "/files/", request->files[i].path);
            return -1;
        }
    }
    for (size_t i = 0; i < request->fetch.count; i++) {
        if (normalise(&request->fetch.items[i], err) < 0) {
            if (err != NULL) {
                (void)snprintf(err->pointer, sizeof(err->pointer), "/fetchFiles/%zu", i);
            }
            return -1;
        }
    }
    return 0;
}

int place_open_fresh(struct sandbox *sandbox, struct place *ret_place, struct err *err)
{
    struct place place = { .sandbox = sandbox };

    if (blanks_open(sandbox->blanks, &place.blank, err) < 0) {
        return -1;
    }
    place.root = place.blank.root;
    place.path = alloc_printf("%s/%s", sandbox->workspaces_path, place.blank.name);
    *ret_place = place;
    return 0;
}

void place_open_session(struct sandbox *sandbox, const struct session_hold *hold,
                        struct place *ret_place)
{
    *ret_place = (struct place){ .sandbox = sandbox,
                                 .path = alloc_text(session_hold_path(hold)),
                                 .root = session_hold_root(hold),
                                 .borrowed = true };
}

int place_open_host(struct sandbox *sandbox, const char *path, struct place *ret_place,
                    struct err *err)
{
    int root = hostdir_open(path);

    if (root < 0) {
        return err_set(err, ERR_CONFLICT, errno, "the workspace directory is not there any more");
    }
    *ret_place = (struct place){ .sandbox = sandbox, .path = alloc_text(path), .root = root };
    return 0;
}

/* A workspace that is full stays closed to runs too, until files are deleted. */
static int check_quota(const struct place *place, const struct run_request *request,
                       struct err *err)
{
    uint64_t quota = request->limits.disk_mb * MIB;
    struct scan *scan = NULL;
    uint64_t used;

    if (quota == 0 || request->workspace_readonly) {
        return 0;
    }
    if (scan_take(place->root, NULL, &scan, err) < 0) {
        return -1;
    }
    used = scan_disk(scan);
    scan_free(scan);
    if (used < quota) {
        return 0;
    }
    (void)err_set(err, ERR_WORKSPACE_FULL, 0, "the workspace holds %llu MiB, its diskMb is %llu",
                  (unsigned long long)(used / MIB), (unsigned long long)request->limits.disk_mb);
    return err_remedy(err, "delete files of the session, or give a new one a larger diskMb");
}

/* What setup installed is not the caller's files. */
static const struct scan_options census_options = { .skip = session_hidden };

static enum run_change change_of(enum scan_change change)
{
    switch (change) {
    case SCAN_CREATED:
        return RUN_CREATED;
    case SCAN_MODIFIED:
        return RUN_MODIFIED;
    case SCAN_DELETED:
        return RUN_DELETED;
    }
    return RUN_MODIFIED;
}

static void collect_changes(struct place *place, struct run_result *result)
{
    struct scan *after;
    struct scan_diff diff;

    if (scan_take(place->root, &census_options, &after, NULL) < 0) {
        result->changes_truncated = true; /* the box made its workspace unreadable */
        return;
    }
    scan_compare(place->root, place->before, after, PLACE_CHANGES_MAX, &diff);
    result->changes_truncated = diff.truncated;
    result->changes = alloc_zero(diff.count + 1, sizeof(*result->changes));
    for (size_t i = 0; i < diff.count; i++) {
        result->changes[i] = (struct run_change_row){ .path = CLEANUP_TAKE(diff.rows[i].path),
                                                      .size = diff.rows[i].size,
                                                      .change = change_of(diff.rows[i].change) };
    }
    result->change_count = diff.count;
    scan_diff_done(&diff);
    scan_free(after);
}

bool place_is_empty(const struct place *place, const struct run_request *request)
{
    return place->blank.name[0] != '\0' && request->file_count == 0 && request->environment == NULL;
}

int place_prepare(struct place *place, const struct run_request *request, struct err *err)
{
    if (place_is_empty(place, request)) {
        place->before = request->track_files ? scan_nothing() : NULL;
        return 0;
    }
    if (request->file_count > 0 && request->session != NULL &&
        session_entry_writable(session_hold_entry(request->session), err) < 0) {
        return err_prefix(err, "files");
    }
    for (size_t i = 0; i < request->file_count; i++) {
        const struct run_file *file = &request->files[i];

        if (put_whole(place->root, file->path, file->data, file->size, err) < 0) {
            return err_prefix(err, "files");
        }
    }
    if (check_quota(place, request, err) < 0) {
        return -1;
    }
    if (request->track_files && scan_take(place->root, &census_options, &place->before, err) < 0) {
        return err_prefix(err, "census of the workspace");
    }
    /* In a fresh workspace nobody has written; beside a flood the wait may be long. */
    if (request->file_count > 0 || request->session != NULL || request->workspace != NULL) {
        spawn_settle();
    }
    return 0;
}

void place_begin(struct place *place, const struct run_request *request)
{
    if (place_is_empty(place, request)) {
        blanks_watch(&place->blank);
    }
}

static const char *why_not_fetched(enum err_code code)
{
    return code == ERR_FILE_NOT_FOUND   ? "not_found"
           : code == ERR_BODY_TOO_LARGE ? "too_large"
           : code == ERR_SESSION_BUSY   ? "busy"
           : code == ERR_BAD_PATH       ? "not_a_file"
                                        : "not_readable";
}

static void fetch_one(struct place *place, const char *path, size_t max, struct run_fetched *ret)
{
    struct err err = ERR_INIT;
    CLEANUP_BUF struct buf data = BUF_INIT(max);

    *ret = (struct run_fetched){ .path = alloc_text(path) };
    if (files_read(place->root, path, &data, NULL, &err) < 0) {
        ret->reason = why_not_fetched(err.code);
        return;
    }
    ret->size = data.size;
    ret->data = data.size > 0 ? buf_take(&data, NULL) : alloc_copy("", 0);
}

static void fetch(struct place *place, const struct run_request *request, struct run_result *result)
{
    size_t left = PLACE_FETCH_MAX;

    if (request->fetch.count == 0) {
        return;
    }
    result->fetched = alloc_zero(request->fetch.count, sizeof(*result->fetched));
    for (size_t i = 0; i < request->fetch.count; i++) {
        struct run_fetched *row = &result->fetched[result->fetched_count++];

        fetch_one(place, request->fetch.items[i], left, row);
        left -= row->size;
    }
}

void place_collect(struct place *place, const struct run_request *request,
                   struct run_result *result)
{
    if (place->before != NULL && !blanks_untouched(&place->blank)) {
        collect_changes(place, result);
    }
    fetch(place, request, result);
}

void place_close(struct place *place, bool unreachable)
{
    struct blank *blank = &place->blank;
    struct remove_left left;

    scan_free(place->before);
    if (blank->name[0] == '\0') {
        fd_close(place->borrowed ? -1 : place->root);
    } else if (blanks_close(place->sandbox->blanks, blank, unreachable && !place->unsure, &left) <
               0) {
        log_line(LOG_DEBUG, "workspace_left", "name", blank->name, NULL);
    }
    free(place->path);
}
