/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse: where a file has data and where holes, for an archive. For lib/work alone; any thread.
 */
#ifndef KERND_WORK_SPARSE_H
#define KERND_WORK_SPARSE_H

#include <stdbool.h>
#include <sys/stat.h>

struct archive_entry;

/* A file with more runs of data would cost more as a map than its holes save. */
#define SPARSE_RUNS_MAX 65536

/* Has it as many blocks as bytes? Then there are no holes to look for. */
bool sparse_is_dense(const struct stat *status);

/*
 * Tells the entry where the data of the open file is, so that holes cost nothing; nothing where the
 * file system can't tell. False: more than SPARSE_RUNS_MAX runs.
 */
bool sparse_map(struct archive_entry *entry, int fd, const struct stat *status);

#endif
