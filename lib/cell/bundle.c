/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: check and take apart one rich result of a driver.
 * Owns: nothing; parts point into the caller's bytes.
 * Threads: any; pure.
 * May include: base.
 */
#include "lib/cell/bundle.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/text.h"

enum bundle_flag { BUNDLE_FLAG_MAIN = 1, BUNDLE_FLAG_SHORTENED = 2 };

struct reader {
    const char *at;
    size_t left;
};

/* A big-endian integer of width bytes. False at the end of the data. */
static bool take_integer(struct reader *reader, size_t width, uint32_t *ret_value)
{
    uint32_t value = 0;

    if (reader->left < width) {
        return false;
    }
    for (size_t i = 0; i < width; i++) {
        value = value << 8 | (unsigned char)reader->at[i];
    }
    reader->at += width;
    reader->left -= width;
    *ret_value = value;
    return true;
}

/* Bytes with their length before them. False when there are fewer. */
static bool take_bytes(struct reader *reader, size_t width, const char **ret_data, size_t *ret_size)
{
    uint32_t size = 0;

    if (!take_integer(reader, width, &size) || reader->left < size) {
        return false;
    }
    *ret_data = reader->at;
    *ret_size = size;
    reader->at += size;
    reader->left -= size;
    return true;
}

/* A byte of a MIME type's name, as RFC 6838 section 4.2 has them, lower case only. */
static bool is_mime_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
           (byte != '\0' && strchr("!#$&^_.+-", byte) != NULL);
}

static bool is_mime(const char *mime, size_t size)
{
    size_t slashes = 0;

    if (size < 3 || size > BUNDLE_MIME_MAX || mime[0] == '/' || mime[size - 1] == '/') {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (mime[i] == '/') {
            slashes++;
        } else if (!is_mime_byte(mime[i])) {
            return false;
        }
    }
    return slashes == 1;
}

static bool has_mime(const struct bundle *bundle, const struct bundle_part *part)
{
    for (size_t i = 0; i < bundle->count; i++) {
        if (bundle->parts[i].mime_size == part->mime_size &&
            memcmp(bundle->parts[i].mime, part->mime, part->mime_size) == 0) {
            return true;
        }
    }
    return false;
}

static const char *take_part(struct reader *reader, struct bundle *bundle)
{
    struct bundle_part part = { 0 };

    if (!take_bytes(reader, 2, &part.mime, &part.mime_size) ||
        !take_bytes(reader, 4, &part.data, &part.data_size)) {
        return "a result is cut short";
    }
    if (!is_mime(part.mime, part.mime_size)) {
        return "a result has a malformed MIME type";
    }
    if (has_mime(bundle, &part)) {
        return "a result has a MIME type twice";
    }
    if (!text_utf8_valid(part.data, part.data_size)) {
        return "a result is not UTF-8";
    }
    bundle->parts[bundle->count++] = part;
    return NULL;
}

static const char *decode(struct reader *reader, struct bundle *bundle)
{
    uint32_t flags = 0;
    uint32_t count = 0;

    if (!take_integer(reader, 1, &flags) || !take_integer(reader, 2, &count)) {
        return "a result is cut short";
    }
    if ((flags & ~(uint32_t)(BUNDLE_FLAG_MAIN | BUNDLE_FLAG_SHORTENED)) != 0) {
        return "a result has unknown flags";
    }
    bundle->is_main = (flags & BUNDLE_FLAG_MAIN) != 0;
    bundle->shortened = (flags & BUNDLE_FLAG_SHORTENED) != 0;
    if (count > BUNDLE_PARTS_MAX || (count == 0 && !bundle->shortened)) {
        return "a result has no parts, or too many";
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *fault = take_part(reader, bundle);

        if (fault != NULL) {
            return fault;
        }
    }
    return reader->left == 0 ? NULL : "a result has bytes behind its end";
}

int bundle_decode(const void *data, size_t size, struct bundle *ret_bundle, struct err *err)
{
    struct reader reader = { .at = data, .left = size };
    struct bundle bundle = { 0 };
    const char *fault = decode(&reader, &bundle);

    if (fault != NULL) {
        return err_set(err, ERR_INTERNAL, 0, "protocol: %s", fault);
    }
    *ret_bundle = bundle;
    return 0;
}
