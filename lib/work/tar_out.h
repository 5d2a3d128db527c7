/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_out: the tar that goes out: of each member the plainest form that holds it. For one thread.
 *
 * pax puts every name that is not ASCII into an extended header, which simple readers refuse or
 * take for a file. The field of the plain header (ustar, POSIX.1-1988) takes the same bytes, as all
 * tars read them; so pax (POSIX.1-2001) is for what does not fit: long names, holes, sizes above
 * 8 GiB.
 */
#ifndef KERND_WORK_TAR_OUT_H
#define KERND_WORK_TAR_OUT_H

#include <stdbool.h>
#include <stddef.h>

struct archive_entry;
struct tar_out;

/* Takes the bytes of the archive; it can't fail. */
typedef void tar_out_take(void *context, const void *data, size_t size);

/* NULL: libarchive can't. */
struct tar_out *tar_out_new(tar_out_take *take, void *context);

/* False: the archive is no good any more, tar_out_error says why. */
bool tar_out_head(struct tar_out *tar, struct archive_entry *entry);
bool tar_out_data(struct tar_out *tar, const void *data, size_t size);
/* The end of the archive; a member that is not complete is filled up with zeros. */
bool tar_out_end(struct tar_out *tar);

const char *tar_out_error(struct tar_out *tar);

/* Without tar_out_end before it nothing more is written. NULL is allowed. */
void tar_out_free(struct tar_out *tar);

#endif
