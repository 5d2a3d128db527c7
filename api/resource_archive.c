/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: sessions as archives, archives into sessions, snapshots back into sessions.
 * Owns: nothing; an archive that was made becomes the reply's.
 * Threads: handlers on the quick lane; the work on the lane of archives.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource_archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/away.h"
#include "api/decode.h"
#include "api/download.h"
#include "api/header.h"
#include "api/resource.h"
#include "api/snapshot_in.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/sandbox/session_archive.h"

/* ---- out ---- */

/* By the query, else by what the client accepts. 0 or -1. */
static int read_format(const struct api_call *call, const struct decode_query *query,
                       bool *ret_gzip, const char **ret_media_type, struct err *err)
{
    static const char *const types[] = { "application/gzip", "application/x-gzip",
                                         "application/x-tar", "application/octet-stream", NULL };
    const char *format = decode_query_text(query, "format");
    int index = header_accept(api_call_header(call, "Accept"), types);

    if (format != NULL && !text_equal(format, "tar.gz") && !text_equal(format, "tar")) {
        return err_set(err, ERR_BAD_VALUE, 0,
                       "the query parameter \"format\" must be tar.gz or tar");
    }
    if (format == NULL && index < 0) {
        (void)err_set(err, ERR_NOT_ACCEPTABLE, 0, "an archive is application/gzip");
        return err_remedy(err, "accept application/gzip or application/x-tar");
    }
    *ret_gzip = format != NULL ? text_equal(format, "tar.gz") : index != 2;
    *ret_media_type = *ret_gzip ? "application/gzip" : "application/x-tar";
    return 0;
}

static void describe(struct api_reply *reply, const struct session_archive *archive)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%" PRIu64, archive->entries);
    api_reply_header(reply, "X-Archive-Entries", text);
    (void)snprintf(text, sizeof(text), "%zu", archive->left_out);
    api_reply_header(reply, "X-Archive-Left-Out", text);
}

static int make(struct api_call *call, const char *id, struct session_archive *ret_archive,
                const char **ret_media_type, struct err *err)
{
    static const char *const known[] = { "path", "format", "links", NULL };
    const struct session_actor actor = resource_actor(call);
    struct session_archive_options options = { .links = true, .cancel = &call->cancel };
    struct decode_query query;
    const char *path;

    if (decode_query(call->query, known, &query, err) < 0 ||
        decode_query_bool(&query, "links", &options.links, err) < 0 ||
        read_format(call, &query, &options.gzip, ret_media_type, err) < 0) {
        return -1;
    }
    path = decode_query_text(&query, "path");
    options.path = path == NULL ? "" : path;
    options.path_size = strlen(options.path);
    return session_archive_make(call->api->sandbox, &actor, id, &options, ret_archive, err);
}

static void work_get(struct api_call *call)
{
    CLEANUP_FREE char *etag = NULL;
    CLEANUP_FREE char *name = NULL;
    struct session_archive archive;
    const char *media_type = "";
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];

    if (resource_id(call, "id", ERR_SESSION_NOT_FOUND, id, &err) < 0 ||
        make(call, id, &archive, &media_type, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    describe(&call->reply, &archive);
    etag = alloc_printf("\"%s\"", archive.digest);
    name = alloc_printf("%s.%s", id, text_equal(media_type, "application/gzip") ? "tar.gz" : "tar");
    download_send(call, &(struct download){ .file = archive.file,
                                            .size = archive.bytes,
                                            .etag = etag,
                                            .media_type = media_type,
                                            .name = name });
}

void resource_archive_get(struct api_call *call)
{
    away_run(call, work_get);
}

/* ---- in ---- */

static void answer_taken(struct api_call *call, const struct session_archive_taken *taken)
{
    struct json_out json;

    resource_reply(call, 200, &json);
    json_out_open(&json, '{');
    json_out_key(&json, "entries");
    json_out_count(&json, taken->entries);
    json_out_key(&json, "bytes");
    json_out_count(&json, taken->bytes);
    json_out_close(&json, '}');
    resource_finish(call, &json);
}

static int put(struct api_call *call, struct session_archive_taken *ret_taken, struct err *err)
{
    static const char *const known[] = { "path", "replace", NULL };
    const struct session_actor actor = resource_actor(call);
    struct session_archive_source source = { .file = call->body_file, .cancel = &call->cancel };
    struct decode_query query;
    char id[RESOURCE_ID_SIZE];
    const char *path;

    if (resource_accepts_json(call, err) < 0 || decode_query(call->query, known, &query, err) < 0 ||
        decode_query_bool(&query, "replace", &source.replace, err) < 0 ||
        resource_id(call, "id", ERR_SESSION_NOT_FOUND, id, err) < 0) {
        return -1;
    }
    path = decode_query_text(&query, "path");
    source.path = path == NULL ? "" : path;
    source.path_size = strlen(source.path);
    return session_archive_take(call->api->sandbox, &actor, id, &source, ret_taken, err);
}

static void work_put(struct api_call *call)
{
    struct session_archive_taken taken;
    struct err err = ERR_INIT;

    if (put(call, &taken, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    answer_taken(call, &taken);
}

void resource_archive_put(struct api_call *call)
{
    away_run(call, work_put);
}

/* ---- back from a snapshot ---- */

static int restore(struct api_call *call, struct session_archive_taken *ret_taken, struct err *err)
{
    const struct session_actor actor = resource_actor(call);
    CLEANUP_FREE char *snapshot = NULL;
    char id[RESOURCE_ID_SIZE];

    if (resource_accepts_json(call, err) < 0 || resource_no_query(call, err) < 0 ||
        resource_id(call, "id", ERR_SESSION_NOT_FOUND, id, err) < 0 ||
        snapshot_in_restore(call->body, call->body_size, &snapshot, err) < 0) {
        return -1;
    }
    return session_archive_restore(
        call->api->sandbox, &actor, id,
        &(struct session_archive_snapshot){ .id = snapshot, .cancel = &call->cancel }, ret_taken,
        err);
}

static void work_restore(struct api_call *call)
{
    struct session_archive_taken taken;
    struct err err = ERR_INIT;

    if (restore(call, &taken, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    answer_taken(call, &taken);
}

void resource_archive_restore(struct api_call *call)
{
    away_run(call, work_restore);
}
