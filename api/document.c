/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: ETag and gzip of documents.
 * Owns: nothing.
 * Threads: handlers on the quick lane.
 * May include: lib/base, zlib.
 */
#include "api/document.h"

#include <stdio.h>
#include <zlib.h>

#include "api/header.h"
#include "lib/base/hash.h"

#define GZIP_FROM 1024        /* bytes: below, it costs more than it saves */
#define GZIP_WINDOW (15 + 16) /* zlib.h: the largest window, in the form of gzip */
#define GZIP_MEMORY 8         /* zlib.h: its default */
#define ETAG_CHARACTERS 32    /* of the hash */
#define ETAG_SIZE (ETAG_CHARACTERS + 8)

/* Replaces the body by its compressed form. False: it stays as it is. */
static bool compress_body(struct buf *body)
{
    z_stream stream = { .next_in = (unsigned char *)body->data, .avail_in = (uInt)body->size };
    struct buf packed = BUF_INIT(body->max);
    bool done;

    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return false;
    }
    stream.avail_out = (uInt)deflateBound(&stream, body->size);
    stream.next_out = (unsigned char *)buf_reserve(&packed, stream.avail_out);
    done = stream.next_out != NULL && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    if (done) {
        buf_commit(&packed, stream.total_out);
        buf_done(body);
        *body = packed;
    } else {
        buf_done(&packed);
    }
    (void)deflateEnd(&stream);
    return done;
}

/* Each form of the same document has a tag of its own (RFC 9110, section 8.8.1). */
static void add_etag(struct api_call *call, const char *hash, bool packed,
                     char out[static ETAG_SIZE])
{
    (void)snprintf(out, ETAG_SIZE, "\"%.*s%s\"", ETAG_CHARACTERS, hash, packed ? "-gzip" : "");
    api_reply_header(&call->reply, "ETag", out);
}

void document_begin(struct api_call *call, struct json_out *ret_json)
{
    call->reply.status = 200;
    api_reply_header(&call->reply, "Content-Type", "application/json");
    json_out_init(ret_json, &call->reply.body);
}

void document_finish(struct api_call *call)
{
    struct api_reply *reply = &call->reply;
    const bool packs = reply->body.size >= GZIP_FROM &&
                       header_takes_gzip(api_call_header(call, "Accept-Encoding"));
    char hash[HASH_HEX_SIZE];
    char etag[ETAG_SIZE];
    bool packed;

    hash_sha256_hex(reply->body.data, reply->body.size, hash);
    packed = packs && compress_body(&reply->body);
    add_etag(call, hash, packed, etag);
    api_reply_header(reply, "Cache-Control", "private, no-cache");
    api_reply_header(reply, "Vary", "Accept-Encoding");
    if (header_has_etag(api_call_header(call, "If-None-Match"), etag, true)) {
        reply->status = 304;
    } else if (packed) {
        api_reply_header(reply, "Content-Encoding", "gzip");
    }
    api_call_finish(call);
}
