/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: one archive, written by two of libarchive's writers that take turns.
 * Owns: both writers.
 * Threads: one at a time.
 * May include: base, libarchive.
 */
#include "lib/work/tar_out.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>

#include "lib/base/alloc.h"

/* Zeros that a member lacks at an early end are written, if they are not too many. */
#define PADDED_MAX ((la_int64_t)1 << 30)

struct tar_out {
    tar_out_take *take;
    void *context;
    struct archive *pax; /* ends the archive, too */
    struct archive *ustar;
    struct archive *current; /* the one of the two that has the member */
    la_int64_t unwritten;    /* bytes of the member that are still to come */
    bool muted;              /* nothing goes out any more */
};

static la_ssize_t output(struct archive *archive, void *context, const void *data, size_t size)
{
    struct tar_out *tar = context;

    (void)archive;
    if (!tar->muted) {
        tar->take(tar->context, data, size);
    }
    return (la_ssize_t)size;
}

/* Without blocks nothing is held back, so that the two can take turns. */
static bool start(struct tar_out *tar, struct archive *writer)
{
    return archive_write_set_bytes_per_block(writer, 0) >= ARCHIVE_WARN &&
           archive_write_open2(writer, tar, NULL, output, NULL, NULL) >= ARCHIVE_WARN;
}

struct tar_out *tar_out_new(tar_out_take *take, void *context)
{
    struct tar_out *tar = alloc_zero(1, sizeof(*tar));

    tar->take = take;
    tar->context = context;
    tar->pax = archive_write_new();
    tar->ustar = archive_write_new();
    tar->current = tar->pax;
    if (archive_write_set_format_pax_restricted(tar->pax) < ARCHIVE_WARN ||
        archive_write_set_format_ustar(tar->ustar) < ARCHIVE_WARN || !start(tar, tar->pax) ||
        !start(tar, tar->ustar)) {
        tar_out_free(tar);
        return NULL;
    }
    return tar;
}

static bool is_ascii(const char *text)
{
    while (text != NULL && *text != '\0' && (unsigned char)*text < 0x80) {
        text++;
    }
    return text == NULL || *text == '\0';
}

/* The two write the same where all is ASCII and fits. */
static bool is_ustars(struct archive_entry *entry)
{
    return archive_entry_sparse_count(entry) == 0 &&
           (!is_ascii(archive_entry_pathname(entry)) || !is_ascii(archive_entry_symlink(entry)));
}

/* What the other one still has to write comes first. A refusal writes nothing. */
static bool begin(struct tar_out *tar, struct archive *writer, struct archive_entry *entry)
{
    if (tar->current != writer && archive_write_finish_entry(tar->current) < ARCHIVE_WARN) {
        return false;
    }
    tar->current = writer;
    /* A warning is about a name that is not UTF-8: it was stored as the bytes it is. */
    return archive_write_header(writer, entry) >= ARCHIVE_WARN;
}

bool tar_out_head(struct tar_out *tar, struct archive_entry *entry)
{
    tar->unwritten = archive_entry_size(entry);
    return (is_ustars(entry) && begin(tar, tar->ustar, entry)) || begin(tar, tar->pax, entry);
}

bool tar_out_data(struct tar_out *tar, const void *data, size_t size)
{
    tar->unwritten -= (la_int64_t)size;
    return archive_write_data(tar->current, data, size) >= 0;
}

bool tar_out_end(struct tar_out *tar)
{
    return archive_write_finish_entry(tar->current) >= ARCHIVE_WARN &&
           archive_write_close(tar->pax) >= ARCHIVE_WARN;
}

const char *tar_out_error(struct tar_out *tar)
{
    return archive_error_string(tar->current);
}

void tar_out_free(struct tar_out *tar)
{
    if (tar == NULL) {
        return;
    }
    /* Each writes an end when it is freed; one that failed does not, and loses its buffer. */
    tar->muted = true;
    if (tar->unwritten > PADDED_MAX) {
        (void)archive_write_fail(tar->current);
    }
    (void)archive_write_free(tar->ustar);
    (void)archive_write_free(tar->pax);
    free(tar);
}
