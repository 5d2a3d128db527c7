/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: feed libmicrohttpd from an api_stream without blocking and without losing a wake.
 * Owns: the api_stream and a reference on its exchange until the response is freed.
 * Threads: event; wake any.
 * May include: server, api.h, lib/base, libmicrohttpd.
 */
#include "server/stream.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "server/exchange.h"

#define BLOCK ((size_t)32 << 10)
#define CLEAN_END (-1)

struct stream {
    struct exchange *exchange;
    struct api_stream *source;
};

static void wake(void *context)
{
    exchange_resume(context);
}

static bool is_broken(struct exchange *exchange)
{
    bool broken;

    (void)pthread_mutex_lock(&exchange->lock);
    broken = exchange->broken || atomic_load(&exchange->edge->stopping);
    (void)pthread_mutex_unlock(&exchange->lock);
    return broken;
}

static ssize_t pull(void *context, uint64_t position, char *out, size_t max)
{
    const struct stream *stream = context;
    long size;

    (void)position;
    if (is_broken(stream->exchange)) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    size = stream->source->read(stream->source, out, max);
    if (size > 0) {
        stream->exchange->sent += (uint64_t)size;
        return size;
    }
    if (size < 0) {
        return size == CLEAN_END ? MHD_CONTENT_READER_END_OF_STREAM
                                 : MHD_CONTENT_READER_END_WITH_ERROR;
    }
    exchange_suspend(stream->exchange, true);
    stream->source->arm(stream->source, wake, stream->exchange);
    return 0;
}

static void release(void *context)
{
    struct stream *stream = context;

    /* After this no wake comes any more, so that the exchange may go. */
    stream->source->free(stream->source);
    exchange_unref(stream->exchange);
    free(stream);
}

struct MHD_Response *stream_response(struct exchange *exchange)
{
    struct stream *stream = alloc_zero(1, sizeof(*stream));
    struct MHD_Response *response;

    stream->exchange = exchange_ref(exchange);
    stream->source = exchange->call.reply.stream;
    exchange->call.reply.stream = NULL;
    response = MHD_create_response_from_callback(exchange->call.reply.stream_size, BLOCK, pull,
                                                 stream, release);
    if (response == NULL) {
        release(stream);
    } else if (text_equal(exchange->method, "HEAD")) {
        /*
         * libmicrohttpd 0.9.75 ends the answer to a HEAD with the last chunk of a body that it does
         * not send: the client would take that for the start of the next answer. Without chunks the
         * end of the connection ends it.
         */
        (void)MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    }
    return response;
}
