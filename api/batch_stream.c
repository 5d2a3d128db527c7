/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: feed a reply with the lines of a batch as its items end.
 * Owns: a reference on the batch until the reply is over.
 * Threads: the stream's functions on the event thread, which hands work over to the alarm's.
 * May include: lib/base, lib/sandbox.
 */
#include <string.h>

#include "api/batch_internal.h"
#include "api/resource.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"

/* On the alarm's thread: the reader has made room, or is gone. Has a reference of its own. */
static void handed_over(struct alarm_entry *entry)
{
    struct batch *batch = CONTAINER_OF(entry, struct batch, alarm);
    bool left;

    (void)pthread_mutex_lock(&batch->lock);
    batch->handing = false;
    left = batch->left;
    (void)pthread_mutex_unlock(&batch->lock);
    if (left) {
        batch_cancel_running(batch);
    }
    batch_pump(batch);
    batch_unref(batch);
}

static void hand_over(struct batch *batch)
{
    bool set;

    (void)pthread_mutex_lock(&batch->lock);
    set = batch->handing;
    batch->handing = true;
    batch->references += set ? 0 : 1;
    (void)pthread_mutex_unlock(&batch->lock);
    if (!set) {
        alarm_set(batch->api->alarm, &batch->alarm, clock_mono_ns());
    }
}

/* Bytes of the lines that are there. Under the lock. */
static size_t copy_lines(struct batch *batch, char *out, size_t max)
{
    size_t done = 0;

    while (done < max && batch->told < batch->ended) {
        struct buf *line = &batch->items[batch->order[batch->told]].line;
        size_t size = line->size - batch->sent;

        size = size < max - done ? size : max - done;
        memcpy(out + done, line->data + batch->sent, size);
        done += size;
        batch->sent += size;
        if (batch->sent == line->size) {
            buf_done(line);
            batch->sent = 0;
            batch->told++;
        }
    }
    batch->unread -= done;
    return done;
}

static long read_lines(struct api_stream *stream, char *out, size_t max)
{
    struct batch *batch = CONTAINER_OF(stream, struct batch, stream);
    bool made_room;
    bool is_over;
    size_t done;

    (void)pthread_mutex_lock(&batch->lock);
    made_room = batch->unread >= BATCH_UNREAD_MAX;
    done = copy_lines(batch, out, max);
    made_room = made_room && batch->unread < BATCH_UNREAD_MAX;
    is_over = batch->told == batch->count;
    (void)pthread_mutex_unlock(&batch->lock);
    if (made_room) {
        hand_over(batch);
    }
    return done > 0 ? (long)done : is_over ? -1 : 0;
}

static void arm_lines(struct api_stream *stream, void (*wake)(void *context), void *context)
{
    struct batch *batch = CONTAINER_OF(stream, struct batch, stream);
    bool now;

    (void)pthread_mutex_lock(&batch->lock);
    now = batch->told < batch->ended || batch->told == batch->count;
    if (!now) {
        batch->wake = wake;
        batch->wake_context = context;
    }
    (void)pthread_mutex_unlock(&batch->lock);
    if (now) {
        wake(context);
    }
}

static void free_lines(struct api_stream *stream)
{
    struct batch *batch = CONTAINER_OF(stream, struct batch, stream);
    bool early;

    (void)pthread_mutex_lock(&batch->lock);
    batch->wake = NULL;
    early = batch->ended < batch->count;
    batch->left = true;
    (void)pthread_mutex_unlock(&batch->lock);
    if (early) {
        hand_over(batch);
    }
    batch_unref(batch);
}

void batch_stream_init(struct batch *batch)
{
    batch->stream = (struct api_stream){ .read = read_lines, .arm = arm_lines, .free = free_lines };
    batch->alarm.ring = handed_over;
}
