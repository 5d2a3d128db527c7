/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: files of sessions: list, read, write, delete, move.
 * Owns: nothing; a file that is read becomes the reply's.
 * Threads: handlers on the quick lane; what takes longer on that of copies.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/away.h"
#include "api/decode.h"
#include "api/download.h"
#include "api/header.h"
#include "api/percent.h"
#include "api/resource.h"
#include "api/route.h"
#include "api/session_in.h"
#include "api/session_out.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/sandbox/sandbox.h"
#include "lib/sandbox/session_files.h"

#define QUICK_BYTES (UINT64_C(4) << 20)
#define LIST_LIMIT 1000
#define LIST_LIMIT_MAX 10000
#define ETAG_HEADER_SIZE (ENTRY_ETAG_SIZE + 2)

/* A session and a path in it. */
struct file {
    struct session_hold *hold;
    struct decode_path path; /* what follows points into it */
    const char *name;
    size_t name_size;
};

/* 0, or -1; then nothing is held. */
static int hold_session(const struct api_call *call, struct session_hold **ret_hold,
                        struct err *err)
{
    const struct session_actor actor = resource_actor(call);
    char id[RESOURCE_ID_SIZE];

    return resource_id(call, "id", ERR_SESSION_NOT_FOUND, id, err) < 0
               ? -1
               : session_hold(call->api->sandbox, &actor, id, ret_hold, err);
}

static int open_file(const struct api_call *call, struct file *ret_file, struct err *err)
{
    if (decode_path(call->target, &ret_file->path, err) < 0) {
        return -1;
    }
    ret_file->name =
        route_parameter(call->route->pattern, "path", &ret_file->path, &ret_file->name_size);
    return hold_session(call, &ret_file->hold, err);
}

static void etag_text(const struct entry *entry, char out[static ETAG_HEADER_SIZE])
{
    (void)snprintf(out, ETAG_HEADER_SIZE, "\"%s\"", entry->etag);
}

/* ---- list ---- */

static int read_query(const struct decode_query *query, struct session_files_query *ret_wanted,
                      char **ret_after, struct err *err)
{
    static const struct decode_range range = { .min = 1, .max = LIST_LIMIT_MAX };
    const char *directory = decode_query_text(query, "path");
    const char *cursor = decode_query_text(query, "cursor");
    uint64_t limit = LIST_LIMIT;
    bool recursive = false;

    if (decode_query_count(query, "limit", &range, &limit, err) < 0 ||
        decode_query_bool(query, "recursive", &recursive, err) < 0 ||
        (cursor != NULL && percent_cursor_parse(cursor, ret_after, err) < 0)) {
        return -1;
    }
    directory = directory == NULL ? "" : directory;
    *ret_wanted = (struct session_files_query){ .directory = directory,
                                                .directory_size = strlen(directory),
                                                .glob = decode_query_text(query, "glob"),
                                                .after = *ret_after,
                                                .recursive = recursive,
                                                .limit = (size_t)limit };
    return 0;
}

static int list(const struct api_call *call, struct list *ret_list, struct err *err)
{
    static const char *const known[] = { "*path", "*glob", "recursive", "limit", "cursor", NULL };
    CLEANUP_FREE char *after = NULL;
    struct session_files_query wanted;
    struct session_hold *hold = NULL;
    struct decode_query query;
    int result;

    if (resource_accepts_json(call, err) < 0 || decode_query(call->query, known, &query, err) < 0 ||
        read_query(&query, &wanted, &after, err) < 0 || hold_session(call, &hold, err) < 0) {
        return -1;
    }
    result = session_files_list(hold, &wanted, ret_list, err);
    session_release(hold, false);
    return result;
}

void resource_file_list(struct api_call *call)
{
    struct err err = ERR_INIT;
    struct json_out json;
    struct list files;

    if (list(call, &files, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    session_out_files(&json, &files);
    session_files_list_done(&files);
    resource_finish(call, &json);
}

/* ---- read ---- */

void resource_file_get(struct api_call *call)
{
    CLEANUP_FREE char *path = NULL;
    struct file file = { .hold = NULL };
    struct err err = ERR_INIT;
    char etag[ETAG_HEADER_SIZE];
    struct entry entry;
    int fd = -1;

    if (resource_no_query(call, &err) < 0 || open_file(call, &file, &err) < 0 ||
        session_files_open(file.hold, file.name, file.name_size, &fd, &entry, &err) < 0) {
        session_release(file.hold, false);
        resource_fail(call, &err);
        return;
    }
    /* An open descriptor reads on even if the session goes: the reply needs no hold. */
    session_release(file.hold, false);
    etag_text(&entry, etag);
    path = alloc_copy(file.name, file.name_size);
    download_send(call, &(struct download){
                            .file = fd,
                            .size = entry.size,
                            .etag = etag,
                            .media_type = "application/octet-stream",
                            .name = strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1 });
}

/* ---- write ---- */

/*
 * If-Match and If-None-Match against what is there now; what they are held to when the file is put
 * in place: an etag for the caller to free, or create_only. 0, or -1 ETAG_MISMATCH.
 */
static int check_conditions(const struct api_call *call, const struct file *file, char **ret_etag,
                            bool *ret_create_only, struct err *err)
{
    const char *match = api_call_header(call, "If-Match");
    const char *none_match = api_call_header(call, "If-None-Match");
    char etag[ETAG_HEADER_SIZE] = "";
    struct entry entry;

    if (match == NULL && none_match == NULL) {
        return 0;
    }
    if (session_files_stat(file->hold, file->name, file->name_size, &entry, NULL) == 0) {
        etag_text(&entry, etag);
    }
    if (match != NULL && (etag[0] == '\0' || !header_has_etag(match, etag, false))) {
        return err_set(err, ERR_ETAG_MISMATCH, 0,
                       etag[0] == '\0' ? "there is no such file" : "the file has another etag");
    }
    if (none_match != NULL && etag[0] != '\0' && header_has_etag(none_match, etag, true)) {
        return err_set(err, ERR_ETAG_MISMATCH, 0, "there is such a file already");
    }
    *ret_create_only = none_match != NULL && etag[0] == '\0';
    *ret_etag = match != NULL ? alloc_text(entry.etag) : NULL;
    return 0;
}

/* A part of a file would be taken for all of it (RFC 9110, section 14.5). */
static int check_whole(const struct api_call *call, struct err *err)
{
    return api_call_header(call, "Content-Range") == NULL
               ? 0
               : err_set(err, ERR_BAD_HEADER, 0, "a file is only written as a whole");
}

static int put(const struct api_call *call, const struct file *file, bool *ret_created,
               struct entry *ret_entry, struct err *err)
{
    CLEANUP_FREE char *etag = NULL;
    struct session_files_put wanted = { .path = file->name,
                                        .path_size = file->name_size,
                                        .file = call->body_file,
                                        .file_size = call->body_file_size };

    if (check_conditions(call, file, &etag, &wanted.create_only, err) < 0) {
        return -1;
    }
    wanted.if_match = etag;
    return session_files_put(file->hold, &wanted, ret_created, ret_entry, err);
}

static void work_put(struct api_call *call)
{
    struct file file = { .hold = NULL };
    struct err err = ERR_INIT;
    char etag[ETAG_HEADER_SIZE];
    struct entry entry;
    bool created = false;
    int result = -1;

    if (resource_no_query(call, &err) == 0 && check_whole(call, &err) == 0 &&
        open_file(call, &file, &err) == 0) {
        result = put(call, &file, &created, &entry, &err);
    }
    session_release(file.hold, result == 0);
    if (result < 0) {
        resource_fail(call, &err);
        return;
    }
    etag_text(&entry, etag);
    call->reply.status = created ? 201 : 204;
    api_reply_header(&call->reply, "ETag", etag);
    if (created) {
        api_reply_header(&call->reply, "Location", call->target);
    }
    api_call_finish(call);
}

/* To bring a large one to the disk takes its time. */
void resource_file_put(struct api_call *call)
{
    if (call->body_file_size > QUICK_BYTES) {
        away_run(call, work_put);
    } else {
        work_put(call);
    }
}

/* ---- delete, move ---- */

static void work_delete(struct api_call *call)
{
    static const char *const known[] = { "recursive", NULL };
    struct file file = { .hold = NULL };
    struct err err = ERR_INIT;
    struct decode_query query;
    bool recursive = false;
    int result = -1;

    if (decode_query(call->query, known, &query, &err) == 0 &&
        decode_query_bool(&query, "recursive", &recursive, &err) == 0 &&
        open_file(call, &file, &err) == 0) {
        const struct session_files_path path = { .text = file.name, .size = file.name_size };

        result = session_files_delete(call->api->sandbox, file.hold, &path, recursive, &err);
    }
    session_release(file.hold, result == 0);
    if (result < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_finish_empty(call);
}

/* A tree may be of any size. */
void resource_file_delete(struct api_call *call)
{
    if (call->query[0] != '\0') {
        away_run(call, work_delete);
    } else {
        work_delete(call);
    }
}

static int move(const struct api_call *call, const struct session_in_move *move,
                struct entry *ret_entry, struct err *err)
{
    struct session_hold *hold = NULL;
    int result;

    if (hold_session(call, &hold, err) < 0) {
        return -1;
    }
    result = session_files_move(hold, move->from, move->to, move->overwrite, ret_entry, err);
    session_release(hold, result == 0);
    return result;
}

void resource_file_move(struct api_call *call)
{
    struct session_in_move wanted = { .from = NULL };
    struct err err = ERR_INIT;
    struct json_out json;
    struct entry entry;
    int result = -1;

    if (resource_accepts_json(call, &err) == 0 && resource_no_query(call, &err) == 0 &&
        session_in_move(call->body, call->body_size, &wanted, &err) == 0) {
        result = move(call, &wanted, &entry, &err);
    }
    if (result < 0) {
        session_in_move_done(&wanted);
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    session_out_file(&json, wanted.to, &entry);
    session_in_move_done(&wanted);
    resource_finish(call, &json);
}
