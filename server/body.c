/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: receive bodies with bounded memory; what goes to disk is spool.c's.
 * Owns: nothing; the buffer is the exchange's.
 * Threads: event.
 * May include: server, api.h, lib/base.
 */
#include "server/body.h"

#include "server/exchange.h"
#include "server/spool.h"

#define MEMORY ((size_t)256 << 20) /* of all JSON bodies on their way */

uint64_t body_limit(const struct exchange *exchange)
{
    return api_route_body(exchange->call.route) == API_BODY_FILE
               ? exchange->edge->upload_max
               : api_route_body_max(exchange->call.route);
}

static int too_large(uint64_t limit, struct err *err)
{
    return err_set(err, ERR_BODY_TOO_LARGE, 0, "the body is larger than %llu bytes",
                   (unsigned long long)limit);
}

void body_begin(struct exchange *exchange)
{
    uint64_t limit = body_limit(exchange);

    exchange->body = BUF_INIT(0);
    switch (api_route_body(exchange->call.route)) {
    case API_BODY_NONE:
        break;
    case API_BODY_JSON:
        exchange->body = BUF_INIT((size_t)limit);
        (void)buf_reserve(&exchange->body, (size_t)exchange->framing.length);
        break;
    case API_BODY_FILE:
        spool_begin(exchange);
        break;
    }
}

void body_forget(struct exchange *exchange)
{
    (void)atomic_fetch_sub(&exchange->edge->buffered, exchange->buffered);
    exchange->buffered = 0;
    buf_done(&exchange->body);
    spool_forget(exchange);
}

static int keep(struct exchange *exchange, const char *data, size_t size, struct err *err)
{
    size_t before = atomic_fetch_add(&exchange->edge->buffered, size);

    exchange->buffered += size;
    if (before + size > MEMORY) {
        return err_set(err, ERR_QUEUE_FULL, 0, "too many large requests at the same time");
    }
    return buf_append(&exchange->body, data, size) == 0 ? 0 : too_large(exchange->body.max, err);
}

int body_take(struct exchange *exchange, const char *data, size_t size, struct err *err)
{
    uint64_t limit = body_limit(exchange);

    exchange->received += size;
    if (exchange->received > limit) {
        return too_large(limit, err);
    }
    switch (api_route_body(exchange->call.route)) {
    case API_BODY_NONE:
        return 0;
    case API_BODY_JSON:
        return keep(exchange, data, size, err);
    case API_BODY_FILE:
        return spool_take(exchange, data, size, err);
    }
    return 0;
}
