/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: what a driver sends. The same bytes in one piece and in many must give the same
 * frames, and whatever is accepted must be as its header promises.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/cell/bundle.h"
#include "lib/cell/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_bundle(const struct wire_frame *frame)
{
    struct bundle bundle;
    size_t bytes = 3;

    if (bundle_decode(frame->data, frame->size, &bundle, NULL) < 0) {
        return;
    }
    assert(bundle.count <= BUNDLE_PARTS_MAX);
    for (size_t i = 0; i < bundle.count; i++) {
        const struct bundle_part *part = &bundle.parts[i];

        assert(part->mime_size >= 3 && part->mime_size <= BUNDLE_MIME_MAX);
        assert(memchr(part->mime, '/', part->mime_size) != NULL);
        assert(text_utf8_valid(part->data, part->data_size));
        bytes += 6 + part->mime_size + part->data_size;
    }
    assert(bytes == frame->size);
}

static void check_frame(const struct wire_frame *frame)
{
    char interpreter[WIRE_INTERPRETER_SIZE];
    struct wire_end end;

    if (wire_parse_ready(frame, interpreter, NULL) == 0) {
        assert(frame->type == WIRE_READY && strlen(interpreter) == frame->size - 1);
    }
    if (wire_parse_end(frame, &end, NULL) == 0) {
        assert(frame->type == WIRE_END && end.exit_code >= 0 && end.exit_code <= 255);
    }
    if (frame->type == WIRE_RESULT) {
        check_bundle(frame);
    }
}

/* Feeds pieces of this size; a digest of the frames that came out and how it ended. */
static uint64_t digest(const uint8_t *data, size_t size, size_t piece)
{
    struct wire wire = WIRE_INIT;
    struct wire_frame frame;
    uint64_t sum = 14695981039346656037U;
    int got = 0;

    for (size_t at = 0; at < size && got == 0; at += piece) {
        assert(wire_feed(&wire, data + at, size - at < piece ? size - at : piece) == 0);
        while ((got = wire_next(&wire, &frame, NULL)) == 1) {
            check_frame(&frame);
            sum = (sum ^ (uint64_t)frame.type) * 1099511628211U;
            for (size_t i = 0; i < frame.size; i++) {
                sum = (sum ^ (unsigned char)frame.data[i]) * 1099511628211U;
            }
        }
    }
    wire_done(&wire);
    return sum ^ (uint64_t)(got < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t whole = digest(data, size, size == 0 ? 1 : size);

    assert(whole == digest(data, size, 7));
    assert(whole == digest(data, size, 1));
    return 0;
}
