/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output: one stream of a log.
 * Owns: readers.
 * Threads: one reader, one thread at a time.
 * May include: lib/base, lib/journal, lib/sandbox.
 */
#include "lib/sandbox/output.h"

#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/journal/journal.h"
#include "lib/journal/stream.h"
#include "lib/sandbox/events.h"
#include "lib/sandbox/executions.h"
#include "lib/sandbox/sandbox_internal.h"

struct output {
    struct stream *stream;
    uint64_t size;
};

struct output *output_open(struct sandbox *sandbox, const struct session_actor *actor,
                           const char *id, bool is_stderr, struct err *err)
{
    const enum event_kind kind = is_stderr ? EVENT_STDERR : EVENT_STDOUT;
    struct output *output;
    struct tape *tape;

    if (executions_check(sandbox, actor, id, err) < 0) {
        return NULL;
    }
    tape = journal_find(sandbox->journal, id, err);
    if (tape == NULL) {
        return NULL;
    }
    output = alloc_zero(1, sizeof(*output));
    output->stream = stream_new(tape, kind);
    output->size = tape_bytes_of(tape, kind);
    tape_unref(tape);
    return output;
}

uint64_t output_size(const struct output *output)
{
    return output->size;
}

size_t output_read(struct output *output, uint64_t offset, void *out, size_t size)
{
    return stream_read(output->stream, offset, out, size);
}

void output_close(struct output *output)
{
    if (output != NULL) {
        stream_free(output->stream);
        free(output);
    }
}
