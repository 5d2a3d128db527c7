/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: receive bodies with bounded memory and without blocking the event thread on a disk.
 * Owns: nothing; the buffer and the spool file are the exchange's.
 * Threads: event, or the lane while the connection is suspended.
 * May include: server, api.h, lib/base.
 */
#include "server/body.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include "lib/base/container.h"
#include "lib/base/fd.h"
#include "server/exchange.h"

#define PIECE ((size_t)1 << 20)    /* written to disk in one go */
#define CHUNK ((size_t)64 << 10)   /* more than libmicrohttpd hands over in one call */
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
        exchange->body = BUF_INIT(PIECE + CHUNK);
        break;
    }
}

void body_forget(struct exchange *exchange)
{
    (void)atomic_fetch_sub(&exchange->edge->buffered, exchange->buffered);
    exchange->buffered = 0;
    buf_done(&exchange->body);
    fd_clear(&exchange->call.body_file);
}

/* ---- memory ---- */

static int keep(struct exchange *exchange, const char *data, size_t size, struct err *err)
{
    size_t before = atomic_fetch_add(&exchange->edge->buffered, size);

    exchange->buffered += size;
    if (before + size > MEMORY) {
        return err_set(err, ERR_QUEUE_FULL, 0, "too many large requests at the same time");
    }
    return buf_append(&exchange->body, data, size) == 0 ? 0 : too_large(exchange->body.max, err);
}

/* ---- disk ---- */

static int spool_error(struct err *err)
{
    if (errno == ENOSPC || errno == EDQUOT) {
        return err_set(err, ERR_STORE_FULL, errno, "no room for the upload on the server's disk");
    }
    return err_set(err, ERR_IO, errno, "the upload could not be kept: %s", err_errno_text(errno));
}

static int write_piece(struct exchange *exchange, struct err *err)
{
    if (exchange->call.body_file < 0) {
        /* Unnamed: nothing to clean up after a crash (open(2), O_TMPFILE). */
        exchange->call.body_file =
            open(exchange->edge->spool_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (exchange->call.body_file < 0) {
            return spool_error(err);
        }
    }
    if (fd_write_full(exchange->call.body_file, exchange->body.data, exchange->body.size) < 0) {
        return spool_error(err);
    }
    /* On its way to the disk while the next ones come: whoever keeps the file waits for all of it
     * (fsync(2)). Only an advance, so it may fail (sync_file_range(2)). */
    (void)sync_file_range(exchange->call.body_file, 0, 0, SYNC_FILE_RANGE_WRITE);
    buf_reset(&exchange->body);
    return 0;
}

static void spool(struct pool_job *job)
{
    struct exchange *exchange = CONTAINER_OF(job, struct exchange, job);

    exchange->spool_failed = write_piece(exchange, &exchange->refusal) < 0;
    exchange_came_back(exchange);
}

static void drop(struct pool_job *job)
{
    struct exchange *exchange = CONTAINER_OF(job, struct exchange, job);

    exchange_no_lane(exchange, &exchange->refusal);
    exchange->spool_failed = true;
    exchange_came_back(exchange);
}

static int keep_file(struct exchange *exchange, const char *data, size_t size, struct err *err)
{
    if (buf_append(&exchange->body, data, size) < 0) {
        return err_set(err, ERR_INTERNAL, 0, "a piece of the body is too large");
    }
    if (exchange->body.size >= PIECE) {
        exchange_send_away(exchange, spool, drop);
    }
    return 0;
}

int body_finish_file(struct exchange *exchange, struct err *err)
{
    struct api_call *call = &exchange->call;

    if (write_piece(exchange, err) < 0) {
        return -1;
    }
    if (lseek(call->body_file, 0, SEEK_SET) < 0) {
        return spool_error(err);
    }
    call->body_file_size = exchange->received;
    return 0;
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
        return keep_file(exchange, data, size, err);
    }
    return 0;
}
