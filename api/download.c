/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: send files, whole or in part, or not at all.
 * Owns: a file until it is the reply's.
 * Threads: handlers, on any thread.
 * May include: lib/base.
 */
#include "api/download.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/header.h"
#include "api/percent.h"
#include "api/resource.h"
#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"

/* Headers that a 200, 206 and 304 share. */
static void describe(struct api_reply *reply, const struct download *download)
{
    CLEANUP_BUF struct buf disposition = BUF_INIT((size_t)64 << 10);

    api_reply_header(reply, "ETag", download->etag);
    api_reply_header(reply, "Cache-Control", "private, no-cache");
    api_reply_header(reply, "Accept-Ranges", "bytes");
    api_reply_header(reply, "Content-Type", download->media_type);
    api_reply_header(reply, "X-Content-Type-Options", "nosniff");
    if (percent_attachment(&disposition, download->name) == 0) {
        api_reply_header(reply, "Content-Disposition", disposition.data);
    }
}

/* The range that is asked for, if the file is still the one it was asked of (If-Range). */
static enum header_range wanted_range(const struct api_call *call, const struct download *download,
                                      uint64_t *ret_from, uint64_t *ret_length)
{
    const char *condition = api_call_header(call, "If-Range");

    if (condition != NULL && !text_equal(condition, download->etag)) {
        return HEADER_RANGE_WHOLE;
    }
    return header_range(api_call_header(call, "Range"), download->size, ret_from, ret_length);
}

static void refuse_range(struct api_call *call, const struct download *download)
{
    struct err err = ERR_INIT;
    char size[64];

    (void)err_set(&err, ERR_RANGE_NOT_SATISFIABLE, 0, "the file has %" PRIu64 " bytes",
                  download->size);
    api_reply_problem(&call->reply, &err, call->target, call->request_id);
    (void)snprintf(size, sizeof(size), "bytes */%" PRIu64, download->size);
    api_reply_header(&call->reply, "Content-Range", size);
    api_call_finish(call);
}

/* Takes the file over. */
static void finish(struct api_call *call, const struct download *download, int status,
                   uint64_t from, uint64_t length)
{
    struct api_reply *reply = &call->reply;

    describe(reply, download);
    reply->status = status;
    reply->file = download->file;
    reply->file_offset = from;
    reply->file_size = length;
    api_call_finish(call);
}

static void send_bytes(struct api_call *call, const struct download *download)
{
    uint64_t from = 0;
    uint64_t length = download->size;
    char range[96];

    switch (wanted_range(call, download, &from, &length)) {
    case HEADER_RANGE_NOT_SATISFIABLE:
        fd_close(download->file);
        refuse_range(call, download);
        break;
    case HEADER_RANGE_PART:
        (void)snprintf(range, sizeof(range), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, from,
                       from + length - 1, download->size);
        api_reply_header(&call->reply, "Content-Range", range);
        finish(call, download, 206, from, length);
        break;
    case HEADER_RANGE_WHOLE:
        finish(call, download, 200, 0, download->size);
        break;
    }
}

void download_send(struct api_call *call, const struct download *download)
{
    const char *match = api_call_header(call, "If-Match");
    const char *none_match = api_call_header(call, "If-None-Match");
    struct err err = ERR_INIT;

    if (match != NULL && !header_has_etag(match, download->etag, false)) {
        fd_close(download->file);
        (void)err_set(&err, ERR_ETAG_MISMATCH, 0, "the file has another etag");
        resource_fail(call, &err);
        return;
    }
    if (none_match != NULL && header_has_etag(none_match, download->etag, true)) {
        finish(call, download, 304, 0, download->size);
        return;
    }
    send_bytes(call, download);
}
