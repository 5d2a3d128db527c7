/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: UTF-8 and base64 on any bytes; what must hold for each input is asserted.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(const struct buf *buf, const void *data, size_t size)
{
    assert(buf->size == size);
    assert(size == 0 || memcmp(buf->data, data, size) == 0);
}

/* Repaired text is valid; valid text is left alone; text in two pieces comes out the same. */
static void check_utf8(const uint8_t *data, size_t size)
{
    CLEANUP_BUF struct buf whole = BUF_INIT(3 * size);
    CLEANUP_BUF struct buf pieces = BUF_INIT(3 * size);
    size_t half = size / 2;
    size_t kept = text_utf8_partial_tail(data, half);

    assert(kept <= 3 && kept <= half);
    assert(text_utf8_repair(&whole, data, size) == 0);
    assert(text_utf8_valid(whole.data, whole.size));
    if (text_utf8_valid(data, size)) {
        same(&whole, data, size);
    }
    assert(text_utf8_repair(&pieces, data, half - kept) == 0);
    assert(text_utf8_repair(&pieces, data + half - kept, size - half + kept) == 0);
    same(&pieces, whole.data, whole.size);
}

/* What was encoded decodes to itself; whatever decodes has no other spelling. */
static void check_base64(const uint8_t *data, size_t size)
{
    CLEANUP_BUF struct buf coded = BUF_INIT(2 * size + 4);
    CLEANUP_BUF struct buf plain = BUF_INIT(size);
    CLEANUP_BUF struct buf decoded = BUF_INIT(size);
    CLEANUP_BUF struct buf again = BUF_INIT(size);

    assert(text_base64_encode(&coded, data, size) == 0);
    assert(text_base64_decode(&plain, coded.data, coded.size) == 0);
    same(&plain, data, size);
    if (text_base64_decode(&decoded, (const char *)data, size) == 0) {
        assert(text_base64_encode(&again, decoded.data, decoded.size) == 0);
        same(&again, data, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_utf8(data, size);
    check_base64(data, size);
    return 0;
}
