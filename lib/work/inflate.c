/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate: libarchive's filters, and what they do not check.
 * Owns: the reader of the compressed file.
 * Threads: one at a time.
 * May include: base, libarchive.
 */
#include "lib/work/inflate.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"

#define PIECE ((size_t)64 * 1024)
#define SLICES 8
#define TAIL 8 /* gzip ends with CRC-32 and length, both little-endian (RFC 1952, 2.3.1) */

struct inflate {
    int in;
    const struct cancel *cancel;
    struct archive *archive;
    uint64_t max_bytes;
    uint64_t produced;
    uint32_t crc;
    uint32_t table[SLICES][256];
    bool is_gzip;
    uint64_t in_bytes; /* that were read */
    int in_errno;
    size_t zeros;             /* zero bytes at the end of what was read */
    unsigned char tail[TAIL]; /* the last bytes before them */
    unsigned char piece[PIECE];
};

static int refuse(struct err *err, const char *rule)
{
    return err_set(err, ERR_BAD_ARCHIVE, 0, "%s", rule);
}

static uint32_t little_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

/* table[n][b]: the CRC-32 of gzip (reflected 0xedb88320) of byte b with n zero bytes behind it. */
static void crc_prepare(struct inflate *inflate)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;

        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? UINT32_C(0xedb88320) : 0);
        }
        inflate->table[0][byte] = crc;
    }
    for (int zeros = 1; zeros < SLICES; zeros++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t crc = inflate->table[zeros - 1][byte];

            inflate->table[zeros][byte] = crc >> 8 ^ inflate->table[0][crc & 0xff];
        }
    }
}

/* Eight bytes a step ("slicing by 8"), as fast as the decompression needs it. */
static void crc_add(struct inflate *inflate, const unsigned char *data, size_t size)
{
    uint32_t crc = ~inflate->crc;

    for (; size >= SLICES; size -= SLICES, data += SLICES) {
        uint32_t low = crc ^ little_endian(data);
        uint32_t high = little_endian(data + 4);

        crc = inflate->table[7][low & 0xff] ^ inflate->table[6][low >> 8 & 0xff] ^
              inflate->table[5][low >> 16 & 0xff] ^ inflate->table[4][low >> 24] ^
              inflate->table[3][high & 0xff] ^ inflate->table[2][high >> 8 & 0xff] ^
              inflate->table[1][high >> 16 & 0xff] ^ inflate->table[0][high >> 24];
    }
    for (size_t i = 0; i < size; i++) {
        crc = crc >> 8 ^ inflate->table[0][(crc ^ data[i]) & 0xff];
    }
    inflate->crc = ~crc;
}

static void keep_tail(struct inflate *inflate, size_t got)
{
    unsigned char end[TAIL * 3];
    size_t used = got;
    size_t size = TAIL;

    while (used > 0 && inflate->piece[used - 1] == 0) {
        used--;
    }
    if (used == 0) {
        inflate->zeros += got;
        return;
    }
    if (used >= TAIL) {
        memcpy(inflate->tail, inflate->piece + used - TAIL, TAIL);
    } else { /* the old tail, zeros behind it, the new bytes: of these the last */
        memcpy(end, inflate->tail, TAIL);
        for (size_t i = 0; i < inflate->zeros && i < TAIL; i++) {
            end[size++] = 0;
        }
        memcpy(end + size, inflate->piece, used);
        memcpy(inflate->tail, end + size + used - TAIL, TAIL);
    }
    inflate->zeros = got - used;
}

/* libarchive's input. */
static la_ssize_t input(struct archive *archive, void *context, const void **ret_data)
{
    struct inflate *inflate = context;
    ssize_t got;

    /* Compressed data may be long and hold nothing. */
    if (cancel_get(inflate->cancel) != CANCEL_NONE) {
        archive_set_error(archive, ECANCELED, "given up");
        return -1;
    }
    do {
        got = read(inflate->in, inflate->piece, PIECE);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        inflate->in_errno = errno;
        archive_set_error(archive, errno, "the archive can't be read");
        return -1;
    }
    if (inflate->in_bytes == 0) {
        inflate->is_gzip = got > 1 && inflate->piece[0] == 0x1f && inflate->piece[1] == 0x8b;
    }
    inflate->in_bytes += (uint64_t)got;
    keep_tail(inflate, (size_t)got);
    *ret_data = inflate->piece;
    return got;
}

static int fail(struct inflate *inflate, struct err *err)
{
    const char *text = archive_error_string(inflate->archive);

    if (cancel_get(inflate->cancel) != CANCEL_NONE) {
        return err_set(err, ERR_CANCELLED, 0, "the archive was not read to its end");
    }
    if (inflate->in_errno != 0) {
        return err_set(err, ERR_IO, inflate->in_errno, "the archive can't be read: %s",
                       err_errno_text(inflate->in_errno));
    }
    if (inflate->in_bytes == 0) {
        return refuse(err, "there is no archive: it has no bytes");
    }
    /* libarchive gives no reason where gzip's trailer is missing (3.6.2). */
    return err_set(err, ERR_BAD_ARCHIVE, 0, "the compressed data is damaged: %s",
                   text != NULL ? text : "its end is missing");
}

int inflate_open(int in, uint64_t max_bytes, const struct cancel *cancel,
                 struct inflate **ret_inflate, struct err *err)
{
    struct inflate *inflate = alloc_zero(1, sizeof(*inflate));
    struct archive_entry *entry;
    int result = -1;

    inflate->in = in;
    inflate->cancel = cancel;
    inflate->max_bytes = max_bytes;
    crc_prepare(inflate);
    inflate->archive = archive_read_new();
    (void)archive_read_support_filter_gzip(inflate->archive);
    (void)archive_read_support_filter_zstd(inflate->archive);
    (void)archive_read_support_filter_xz(inflate->archive);
    (void)archive_read_support_filter_bzip2(inflate->archive);
    (void)archive_read_support_format_raw(inflate->archive);
    if (archive_read_open(inflate->archive, inflate, NULL, input, NULL) < ARCHIVE_WARN ||
        archive_read_next_header(inflate->archive, &entry) != ARCHIVE_OK) {
        (void)fail(inflate, err);
    } else if (archive_filter_count(inflate->archive) > 2) { /* the file itself counts as one */
        (void)refuse(err, "the archive is compressed more than once");
    } else {
        result = 0;
    }
    if (result < 0) {
        inflate_close(inflate);
        return -1;
    }
    *ret_inflate = inflate;
    return 0;
}

/* Ends what was read with these bytes, and zeros behind them if any (gzip allows such padding)? */
static bool ends_with(const struct inflate *inflate, const unsigned char trailer[static TAIL])
{
    size_t used = TAIL;

    while (used > 0 && trailer[used - 1] == 0) {
        used--;
    }
    return inflate->zeros >= TAIL - used && memcmp(inflate->tail + TAIL - used, trailer, used) == 0;
}

/* At the end: what libarchive's gzip filter does not look at, and bytes it would pass over. */
static int check_end(struct inflate *inflate, struct err *err)
{
    unsigned char trailer[TAIL];

    for (unsigned i = 0; i < TAIL / 2; i++) {
        trailer[i] = (unsigned char)(inflate->crc >> 8 * i);
        trailer[TAIL / 2 + i] = (unsigned char)(inflate->produced >> 8 * i);
    }
    if (inflate->is_gzip && !ends_with(inflate, trailer)) {
        return refuse(err, "the compressed data is damaged (checksum or length), or more follows");
    }
    return 0;
}

ssize_t inflate_next(struct inflate *inflate, const void **ret_data, struct err *err)
{
    size_t size = 0;
    la_int64_t offset = 0;
    int code;

    if (cancel_get(inflate->cancel) != CANCEL_NONE) {
        return fail(inflate, err);
    }
    do {
        code = archive_read_data_block(inflate->archive, ret_data, &size, &offset);
    } while (code == ARCHIVE_RETRY || (code == ARCHIVE_OK && size == 0));
    if (code == ARCHIVE_EOF) {
        return check_end(inflate, err);
    }
    if (code < ARCHIVE_OK) {
        return fail(inflate, err);
    }
    inflate->produced += size;
    if (inflate->produced > inflate->max_bytes) {
        return refuse(err, "the archive unpacks to more bytes than are allowed");
    }
    if (inflate->is_gzip) {
        crc_add(inflate, *ret_data, size);
    }
    return (ssize_t)size;
}

void inflate_close(struct inflate *inflate)
{
    if (inflate != NULL) {
        (void)archive_read_free(inflate->archive);
        free(inflate);
    }
}
