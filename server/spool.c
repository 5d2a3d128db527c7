/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write an upload to disk beside receiving it.
 * Owns: nothing; pieces, job and file are the exchange's.
 * Threads: event; the lane for the piece that is written; one lock, the exchange's, for what both
 * look at.
 * May include: server, api.h, lib/base.
 */
#include "server/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include "lib/base/container.h"
#include "lib/base/fd.h"
#include "server/exchange.h"

#define PIECE ((size_t)1 << 20)  /* written to disk in one go */
#define CHUNK ((size_t)64 << 10) /* more than libmicrohttpd hands over in one call */

void spool_begin(struct exchange *exchange)
{
    exchange->spool.filling = BUF_INIT(PIECE + CHUNK);
    exchange->spool.writing = BUF_INIT(PIECE + CHUNK);
}

/* ---- the file ---- */

static int file_error(struct err *err)
{
    if (errno == ENOSPC || errno == EDQUOT) {
        return err_set(err, ERR_STORE_FULL, errno, "no room for the upload on the server's disk");
    }
    return err_set(err, ERR_IO, errno, "the upload could not be kept: %s", err_errno_text(errno));
}

static int write_piece(struct exchange *exchange, struct buf *piece, struct err *err)
{
    if (exchange->call.body_file < 0) {
        /* Unnamed: nothing to clean up after a crash (open(2), O_TMPFILE). */
        exchange->call.body_file =
            open(exchange->edge->spool_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (exchange->call.body_file < 0) {
            return file_error(err);
        }
    }
    if (fd_write_full(exchange->call.body_file, piece->data, piece->size) < 0) {
        return file_error(err);
    }
    /* On its way to the disk while the next ones come: whoever keeps the file waits for all of it
     * (fsync(2)). Only an advance, so it may fail (sync_file_range(2)). */
    (void)sync_file_range(exchange->call.body_file, 0, 0, SYNC_FILE_RANGE_WRITE);
    buf_reset(piece);
    return 0;
}

/* ---- the job ---- */

static void run(struct pool_job *job);
static void drop(struct pool_job *job);

/* Locked. The full piece is the job's now, an empty one the event thread's. */
static void swap(struct spool *spool)
{
    struct buf full = spool->filling;

    spool->filling = spool->writing;
    spool->writing = full;
    spool->busy = true;
}

/* Locked. */
static void fail(struct spool *spool, const struct err *why)
{
    spool->failed = true;
    spool->err = *why;
}

/* What the job has to do at its end, as it was when it was found to be the end. */
struct spool_end {
    bool unwanted;
    struct pool_job *next;
};

/* The job is over, and nothing waits to be written: hands on what waited for it. */
static void leave(struct exchange *exchange, const struct spool_end *end)
{
    if (end->unwanted) {
        buf_done(&exchange->spool.writing);
        fd_clear(&exchange->call.body_file);
    }
    if (end->next != NULL) {
        end->next->run(end->next);
    }
    exchange_unref(exchange);
}

/*
 * The piece is written, or why is why not. Goes on with the next one if it is complete; if not,
 * that it is over is told under the same lock, or a connection that begins to wait in between would
 * wait for nobody.
 */
static void go_on(struct exchange *exchange, const struct err *why)
{
    struct spool *spool = &exchange->spool;
    struct spool_end end;
    bool was_full;
    bool more;

    (void)pthread_mutex_lock(&exchange->lock);
    was_full = spool->full;
    spool->full = false;
    if (why != NULL) {
        fail(spool, why);
    }
    more = was_full && !spool->failed;
    if (more) {
        swap(spool);
    } else {
        spool->busy = false;
    }
    end = (struct spool_end){ .unwanted = spool->unwanted, .next = spool->next };
    (void)pthread_mutex_unlock(&exchange->lock);
    if (was_full) {
        exchange_resume(exchange);
    }
    if (!more) {
        leave(exchange, &end);
    } else if (pool_resubmit(exchange->edge->lane, &spool->job, NULL) < 0) {
        drop(&spool->job); /* it had a place in the queue: the server stops */
    }
}

static void run(struct pool_job *job)
{
    struct exchange *exchange = CONTAINER_OF(job, struct exchange, spool.job);
    struct err why = ERR_INIT;

    go_on(exchange, write_piece(exchange, &exchange->spool.writing, &why) < 0 ? &why : NULL);
}

static void drop(struct pool_job *job)
{
    struct exchange *exchange = CONTAINER_OF(job, struct exchange, spool.job);
    struct err why = ERR_INIT;

    exchange_no_lane(exchange, &why);
    go_on(exchange, &why);
}

static void submit(struct exchange *exchange)
{
    struct spool *spool = &exchange->spool;

    spool->job = (struct pool_job){ .run = run, .drop = drop, .caller = exchange->call.caller };
    (void)exchange_ref(exchange);
    if (pool_submit(exchange->edge->lane, &spool->job, NULL) < 0) {
        drop(&spool->job);
    }
}

/* ---- the event thread ---- */

/* False: the piece before is not written yet. Its job takes this one too if the connection waits
 * for that. */
static bool hand_over(struct exchange *exchange, bool waits)
{
    struct spool *spool = &exchange->spool;
    bool is_busy;
    bool takes;

    (void)pthread_mutex_lock(&exchange->lock);
    is_busy = spool->busy;
    takes = !is_busy && !spool->failed;
    if (takes) {
        swap(spool);
    }
    spool->full = is_busy && waits;
    (void)pthread_mutex_unlock(&exchange->lock);
    if (takes) {
        submit(exchange);
    }
    return !is_busy;
}

/* The second time the connection is suspended already, so that the job may resume it at any time.
 */
static void hand_over_or_wait(struct exchange *exchange)
{
    if (hand_over(exchange, false)) {
        return;
    }
    exchange_suspend(exchange, true);
    if (hand_over(exchange, true)) {
        exchange_resume(exchange);
    }
}

static bool has_failed(struct exchange *exchange, struct err *err)
{
    const struct spool *spool = &exchange->spool;
    bool failed;

    (void)pthread_mutex_lock(&exchange->lock);
    failed = spool->failed;
    if (failed) {
        *err = spool->err;
    }
    (void)pthread_mutex_unlock(&exchange->lock);
    return failed;
}

int spool_take(struct exchange *exchange, const char *data, size_t size, struct err *err)
{
    struct spool *spool = &exchange->spool;

    if (has_failed(exchange, err)) {
        return -1;
    }
    if (buf_append(&spool->filling, data, size) < 0) {
        return err_set(err, ERR_INTERNAL, 0, "a piece of the body is too large");
    }
    if (spool->filling.size < PIECE) {
        return 0;
    }
    /* Nobody would wake it any more. */
    if (atomic_load(&exchange->edge->stopping)) {
        return err_set(err, ERR_SHUTTING_DOWN, 0, "the server is shutting down");
    }
    hand_over_or_wait(exchange);
    return 0;
}

void spool_forget(struct exchange *exchange)
{
    struct spool *spool = &exchange->spool;
    bool busy;

    (void)pthread_mutex_lock(&exchange->lock);
    busy = spool->busy;
    spool->unwanted = true;
    (void)pthread_mutex_unlock(&exchange->lock);
    buf_done(&spool->filling);
    if (!busy) {
        buf_done(&spool->writing);
        fd_clear(&exchange->call.body_file);
    }
}

bool spool_run_behind(struct exchange *exchange, struct pool_job *next)
{
    bool busy;

    (void)pthread_mutex_lock(&exchange->lock);
    busy = exchange->spool.busy;
    exchange->spool.next = busy ? next : NULL;
    (void)pthread_mutex_unlock(&exchange->lock);
    return busy;
}

int spool_finish(struct exchange *exchange, struct err *err)
{
    struct api_call *call = &exchange->call;

    if (has_failed(exchange, err) || write_piece(exchange, &exchange->spool.filling, err) < 0) {
        return -1;
    }
    if (lseek(call->body_file, 0, SEEK_SET) < 0) {
        return file_error(err);
    }
    call->body_file_size = exchange->received;
    return 0;
}

void spool_done(struct exchange *exchange)
{
    buf_done(&exchange->spool.filling);
    buf_done(&exchange->spool.writing);
    fd_close(exchange->call.body_file);
}
