/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: list, look up, download and delete snapshots (resource_snapshot_make.c makes them).
 * Owns: nothing; an archive that is read becomes the reply's.
 * Threads: handlers on the quick lane.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource_snapshot.h"

#include <string.h>
#include <unistd.h>

#include "api/decode.h"
#include "api/download.h"
#include "api/resource.h"
#include "api/snapshot_out.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/id.h"

#define LIST_LIMIT 100
#define LIST_LIMIT_MAX 1000

static int read_id(const struct api_call *call, char id[static RESOURCE_ID_SIZE], struct err *err)
{
    return resource_no_query(call, err) < 0
               ? -1
               : resource_id(call, "id", ERR_SNAPSHOT_NOT_FOUND, id, err);
}

void resource_snapshot_get(struct api_call *call)
{
    const struct session_actor actor = resource_actor(call);
    struct snapshots_view view;
    struct err err = ERR_INIT;
    struct json_out json;
    char id[RESOURCE_ID_SIZE];

    if (resource_accepts_json(call, &err) < 0 || read_id(call, id, &err) < 0 ||
        snapshots_get(call->api->sandbox, &actor, id, &view, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    snapshot_out_write(&json, &view);
    snapshots_view_done(&view);
    resource_finish(call, &json);
}

/* ---- list ---- */

static int read_filter(const struct decode_query *query, struct snapshots_filter *ret_filter,
                       struct err *err)
{
    static const struct decode_range range = { .min = 1, .max = LIST_LIMIT_MAX };
    const char *session = decode_query_text(query, "sessionId");
    uint64_t limit = LIST_LIMIT;

    if (decode_query_count(query, "limit", &range, &limit, err) < 0) {
        return -1;
    }
    if (session != NULL && !id_valid(session)) {
        return err_set(err, ERR_BAD_VALUE, 0,
                       "the query parameter \"sessionId\" must be the id of a session");
    }
    *ret_filter = (struct snapshots_filter){ .limit = (size_t)limit,
                                             .cursor = decode_query_text(query, "cursor"),
                                             .session_id = session };
    return 0;
}

void resource_snapshot_list(struct api_call *call)
{
    static const char *const known[] = { "limit", "cursor", "sessionId", NULL };
    const struct session_actor actor = resource_actor(call);
    struct decode_query query;
    struct snapshots_filter filter;
    struct snapshots_page page;
    struct err err = ERR_INIT;
    struct json_out json;

    if (resource_accepts_json(call, &err) < 0 ||
        decode_query(call->query, known, &query, &err) < 0 ||
        read_filter(&query, &filter, &err) < 0 ||
        snapshots_list(call->api->sandbox, &actor, &filter, &page, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    snapshot_out_page(&json, &page);
    snapshots_page_done(&page);
    resource_finish(call, &json);
}

/* ---- delete, download ---- */

void resource_snapshot_delete(struct api_call *call)
{
    const struct session_actor actor = resource_actor(call);
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];

    if (read_id(call, id, &err) < 0 || snapshots_delete(call->api->sandbox, &actor, id, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_finish_empty(call);
}

struct format {
    const char *magic;
    size_t magic_size;
    const char *media_type;
    const char *ending;
};

/* Ours are always the first; imported ones are whatever they were. */
static const struct format *format_of(int file)
{
    static const struct format formats[] = {
        { "\x1f\x8b", 2, "application/gzip", "tar.gz" },          /* RFC 1952 */
        { "\x28\xb5\x2f\xfd", 4, "application/zstd", "tar.zst" }, /* RFC 8878 */
        { "\xfd"
          "7zXZ",
          5, "application/x-xz", "tar.xz" },
        { "BZh", 3, "application/x-bzip2", "tar.bz2" },
    };
    static const struct format plain = { "", 0, "application/x-tar", "tar" };
    char start[8] = "";

    ssize_t got = pread(file, start, sizeof(start), 0);

    for (size_t i = 0; got > 0 && i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (memcmp(start, formats[i].magic, formats[i].magic_size) == 0) {
            return &formats[i];
        }
    }
    return &plain;
}

void resource_snapshot_content(struct api_call *call)
{
    const struct session_actor actor = resource_actor(call);
    CLEANUP_FREE char *etag = NULL;
    CLEANUP_FREE char *name = NULL;
    const struct format *format;
    struct snapshots_view view;
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];
    int file;

    if (read_id(call, id, &err) < 0 ||
        snapshots_read(call->api->sandbox, &actor, id, &file, &view, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    format = format_of(file);
    etag = alloc_printf("\"%s\"", view.digest);
    name = alloc_printf("%s.%s", view.name[0] != '\0' ? view.name : view.id, format->ending);
    download_send(call, &(struct download){ .file = file,
                                            .size = view.bytes,
                                            .etag = etag,
                                            .media_type = format->media_type,
                                            .name = name });
    snapshots_view_done(&view);
}
