/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: send replies.
 * Owns: a reply's body, file or stream once it is queued.
 * Threads: event; the bare ones any.
 * May include: server, api.h, lib/base, libmicrohttpd.
 */
#include "server/reply.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/id.h"
#include "lib/base/text.h"
#include "server/exchange.h"
#include "server/stream.h"

#define BARE_BYTES_MAX ((size_t)16 << 10)
#define SEND_S 60.0       /* for a reply of a few bytes; */
#define SEND_RATE 16384.0 /* and for each further second this many bytes must be taken */

static const char *const always[] = {
    "Cache-Control", "no-store", "X-Content-Type-Options", "nosniff", NULL,
};

static bool has_header(const struct api_reply *reply, const char *name)
{
    for (size_t i = 0; i + 1 < reply->headers.count; i += 2) {
        if (strcasecmp(reply->headers.items[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void complete_headers(struct api_reply *reply, const char *request_id, bool closes)
{
    for (size_t i = 0; always[i] != NULL; i += 2) {
        if (!has_header(reply, always[i])) {
            api_reply_header(reply, always[i], always[i + 1]);
        }
    }
    api_reply_header(reply, "X-Request-Id", request_id);
    if (closes) {
        api_reply_header(reply, "Connection", "close");
    }
}

/* ---- through libmicrohttpd ---- */

/* Bytes of a body that is known whole; libmicrohttpd leaves it out where none may be. */
static uint64_t bytes_to_send(const struct exchange *exchange)
{
    const struct api_reply *reply = &exchange->call.reply;

    if (reply->status == MHD_HTTP_NOT_MODIFIED || text_equal(exchange->method, "HEAD")) {
        return 0;
    }
    return reply->file >= 0 ? reply->file_size : reply->body.size;
}

static struct MHD_Response *make_response(struct exchange *exchange)
{
    struct api_reply *reply = &exchange->call.reply;
    struct MHD_Response *response;
    size_t size = 0;
    char *body;

    if (reply->stream != NULL) {
        return stream_response(exchange);
    }
    if (reply->file >= 0) {
        response = MHD_create_response_from_fd_at_offset64(reply->file_size, reply->file,
                                                           reply->file_offset);
        if (response != NULL) {
            reply->file = -1;
        }
        return response;
    }
    body = buf_take(&reply->body, &size);
    response = MHD_create_response_from_buffer(size, body, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(body);
    }
    return response;
}

int reply_queue(struct exchange *exchange)
{
    struct api_reply *reply = &exchange->call.reply;
    struct MHD_Response *response;
    bool is_stream = reply->stream != NULL;
    bool is_file = reply->file >= 0;
    enum MHD_Result result;

    exchange->closes = exchange->closes || atomic_load(&exchange->edge->draining);
    api_call_replying(&exchange->call);
    complete_headers(reply, exchange->request_id, exchange->closes);
    exchange->sent = is_stream ? 0 : bytes_to_send(exchange);
    response = make_response(exchange);
    if (response == NULL) {
        return -1;
    }
    for (size_t i = 0; i + 1 < reply->headers.count; i += 2) {
        (void)MHD_add_response_header(response, reply->headers.items[i],
                                      reply->headers.items[i + 1]);
    }
    exchange->status = reply->status;
    exchange_set_phase(exchange, EXCHANGE_REPLYING);
    if (is_file && exchange->connection->tcp) {
        uncork_begin(&exchange->uncork, exchange->edge->alarm, exchange->connection->fd,
                     exchange->sent);
    }
    result = MHD_queue_response(exchange->mhd, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    if (is_stream) {
        connection_wait(exchange->connection);
        (void)MHD_set_connection_option(exchange->mhd, MHD_CONNECTION_OPTION_TIMEOUT,
                                        (unsigned)CONNECTION_STREAM_SILENCE_S);
    } else {
        connection_expect(exchange->connection, SEND_S);
        connection_progress(exchange->connection, exchange->sent, SEND_RATE);
    }
    return result == MHD_YES ? 0 : -1;
}

static void fill_problem(const struct exchange *exchange, const struct err *err,
                         struct api_reply *reply)
{
    api_reply_problem(reply, err, exchange->target, exchange->request_id);
    if (exchange->allow[0] != '\0') {
        api_reply_header(reply, "Allow", exchange->allow);
    }
}

int reply_refusal(struct exchange *exchange)
{
    fill_problem(exchange, &exchange->refusal, &exchange->call.reply);
    return reply_queue(exchange);
}

/* ---- straight to the socket ---- */

void reply_bare(int fd, const struct api_reply *reply, const char *request_id)
{
    CLEANUP_BUF struct buf text = BUF_INIT(BARE_BYTES_MAX);
    struct api_reply headers;
    char date[CLOCK_HTTP_SIZE];
    int failed;

    api_reply_init(&headers);
    strv_copy(&headers.headers, &reply->headers);
    api_reply_header(&headers, "Date", clock_format_http(clock_wall_ms(), date));
    complete_headers(&headers, request_id, true);
    failed = buf_printf(&text, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\n", reply->status,
                        MHD_get_reason_phrase_for((unsigned)reply->status), reply->body.size);
    for (size_t i = 0; i + 1 < headers.headers.count; i += 2) {
        failed |=
            buf_printf(&text, "%s: %s\r\n", headers.headers.items[i], headers.headers.items[i + 1]);
    }
    failed |= buf_append_text(&text, "\r\n");
    failed |= buf_append(&text, reply->body.data, reply->body.size);
    if (failed == 0) {
        (void)send(fd, text.data, text.size, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    api_reply_done(&headers);
}

void reply_bare_problem(int fd, const struct err *err)
{
    char request_id[ID_SIZE];
    struct api_reply reply;

    api_reply_init(&reply);
    api_reply_problem(&reply, err, NULL, id_make("req", request_id));
    reply_bare(fd, &reply, request_id);
    api_reply_done(&reply);
}

static void cut(struct exchange *exchange, const struct err *err)
{
    struct api_reply reply;

    api_reply_init(&reply);
    fill_problem(exchange, err, &reply);
    exchange->status = reply.status;
    reply_bare(exchange->connection->fd, &reply, exchange->request_id);
    api_reply_done(&reply);
}

void reply_cut(struct exchange *exchange)
{
    cut(exchange, &exchange->refusal);
}

void reply_expired(struct exchange *exchange)
{
    struct err late = ERR_INIT;

    if (exchange_phase(exchange) == EXCHANGE_REFUSED) {
        cut(exchange, &exchange->refusal);
        return;
    }
    if (atomic_load(&exchange->edge->draining)) {
        (void)err_set(&late, ERR_SHUTTING_DOWN, 0, "the server is shutting down");
    } else {
        (void)err_set(&late, ERR_REQUEST_TIMEOUT, 0, "the request's body did not arrive in time");
    }
    cut(exchange, &late);
}
