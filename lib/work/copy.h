/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy: the contents of one workspace into another, empty one, on the same machine.
 *
 * Regular files (sharing their blocks where the file system can: reflinks), directories, symbolic
 * links, with modes and times; holes stay holes; hard links become files of their own; FIFOs,
 * sockets, devices and what can't be read are left out and counted. Any thread.
 */
#ifndef KERND_WORK_COPY_H
#define KERND_WORK_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/cancel.h"
#include "lib/base/err.h"

struct copy_options {
    const char *const *skip; /* whole paths to leave out; NULL-terminated, or NULL */
    uint64_t max_bytes;      /* of data, shared or not: WORKSPACE_FULL above; 0: no bound */
    struct cancel *cancel;   /* may be NULL: CANCELLED when fired */
};

struct copy_result {
    uint64_t entries;
    uint64_t bytes;
    uint64_t left_out;
};

/* from, to: open for reading. 0, or -1 WORKSPACE_FULL, CANCELLED, FORBIDDEN, IO. */
int copy_tree(int from, int to, const struct copy_options *options, struct copy_result *ret_result,
              struct err *err);

#endif
