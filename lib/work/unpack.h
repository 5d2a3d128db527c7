/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack: a tar archive, taken as hostile, into an empty directory.
 *
 * Everything or nothing: the first member that breaks a rule ends it with BAD_ARCHIVE naming member
 * and rule, and the caller throws the directory away. Allowed are regular files, directories,
 * symbolic links that stay inside (link.h) and hard links to earlier files, each name once.
 * Refused: absolute names, "..", members below a link or a file, devices, FIFOs, setuid or setgid
 * files, too many entries or bytes or levels, damage, and anything behind the end. Owners are
 * ignored. Any thread; a second one decompresses meanwhile (ahead.h).
 */
#ifndef KERND_WORK_UNPACK_H
#define KERND_WORK_UNPACK_H

#include <stdint.h>

#include "lib/base/cancel.h"
#include "lib/base/err.h"

#define UNPACK_DEPTH_MAX 256
#define UNPACK_ENTRIES_MAX UINT64_C(1000000) /* of what a server takes and makes */

struct unpack_limits {
    uint64_t max_bytes;    /* of file data, holes not counted */
    enum err_code full;    /* what more bytes are; NONE: BAD_ARCHIVE */
    uint64_t max_entries;  /* members */
    unsigned max_depth;    /* components of a name; 0: UNPACK_DEPTH_MAX */
    struct cancel *cancel; /* may be NULL: CANCELLED when fired */
};

struct unpack_result {
    uint64_t entries;
    uint64_t bytes; /* of file data */
};

/*
 * directory: empty, ours, open for reading. in: the archive, plain or compressed with gzip, zstd,
 * xz or bzip2; a file or a pipe. 0, or -1 BAD_ARCHIVE, WORKSPACE_FULL, CANCELLED, IO.
 */
int unpack_into(int directory, int in, const struct unpack_limits *limits,
                struct unpack_result *ret_result, struct err *err);

#endif
