/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: raw standard output and error of an execution.
 * Owns: a reader of the log while a reply is sent.
 * Threads: handlers on the quick lane; the reply is read on the event thread.
 * May include: lib/base, lib/sandbox.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/header.h"
#include "api/resource.h"
#include "api/resource_execution.h"
#include "lib/base/alloc.h"
#include "lib/base/container.h"
#include "lib/sandbox/output.h"

struct raw {
    struct api_stream stream;
    struct output *output;
    uint64_t at;
    uint64_t end;
};

static long raw_read(struct api_stream *stream, char *out, size_t max)
{
    struct raw *raw = CONTAINER_OF(stream, struct raw, stream);
    uint64_t left = raw->end - raw->at;
    size_t size;

    if (left == 0) {
        return -1;
    }
    size = output_read(raw->output, raw->at, out, left < max ? (size_t)left : max);
    raw->at += size;
    /* What was counted is there: nothing means that the log can't be read. */
    return size > 0 ? (long)size : -2;
}

/* There is always something to read, or it is over: the server never waits. */
static void raw_arm(struct api_stream *stream, void (*wake)(void *context), void *context)
{
    (void)stream;
    wake(context);
}

static void raw_free(struct api_stream *stream)
{
    struct raw *raw = CONTAINER_OF(stream, struct raw, stream);

    output_close(raw->output);
    free(raw);
}

static void refuse_range(struct api_call *call, uint64_t size)
{
    struct err err = ERR_INIT;
    char range[64];

    (void)err_set(&err, ERR_RANGE_NOT_SATISFIABLE, 0, "there are %" PRIu64 " bytes so far", size);
    api_reply_problem(&call->reply, &err, call->target, call->request_id);
    (void)snprintf(range, sizeof(range), "bytes */%" PRIu64, size);
    api_reply_header(&call->reply, "Content-Range", range);
    api_call_finish(call);
}

/* output is taken over. */
static void send_part(struct api_call *call, struct output *output, uint64_t from, uint64_t length)
{
    struct raw *raw = alloc_zero(1, sizeof(*raw));

    *raw = (struct raw){ .stream = { .read = raw_read, .arm = raw_arm, .free = raw_free },
                         .output = output,
                         .at = from,
                         .end = from + length };
    api_reply_header(&call->reply, "Content-Type", "application/octet-stream");
    api_reply_header(&call->reply, "Content-Disposition", "attachment");
    api_reply_header(&call->reply, "Accept-Ranges", "bytes");
    call->reply.stream = &raw->stream;
    call->reply.stream_size = length;
    api_call_finish(call);
}

static void send(struct api_call *call, struct output *output, uint64_t size)
{
    uint64_t from = 0;
    uint64_t length = size;
    char range[96];

    switch (header_range(api_call_header(call, "Range"), size, &from, &length)) {
    case HEADER_RANGE_NOT_SATISFIABLE:
        output_close(output);
        refuse_range(call, size);
        return;
    case HEADER_RANGE_PART:
        call->reply.status = 206;
        (void)snprintf(range, sizeof(range), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, from,
                       from + length - 1, size);
        api_reply_header(&call->reply, "Content-Range", range);
        break;
    case HEADER_RANGE_WHOLE:
        call->reply.status = 200;
        break;
    }
    send_part(call, output, from, length);
}

static void reply(struct api_call *call, bool is_stderr)
{
    const struct session_actor actor = resource_actor(call);
    struct output *output = NULL;
    struct err err = ERR_INIT;
    char id[RESOURCE_ID_SIZE];

    if (resource_no_query(call, &err) == 0 &&
        resource_id(call, "id", ERR_EXECUTION_NOT_FOUND, id, &err) == 0) {
        output = output_open(call->api->sandbox, &actor, id, is_stderr, &err);
    }
    if (output == NULL) {
        resource_fail(call, &err);
        return;
    }
    send(call, output, output_size(output));
}

void resource_execution_output_stdout(struct api_call *call)
{
    reply(call, false);
}

void resource_execution_output_stderr(struct api_call *call)
{
    reply(call, true);
}
